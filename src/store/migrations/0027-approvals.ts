/** Requests for approval, their answers, and what came of them; conditions of authorizations. */
import { notedBy } from './0021-changes.ts'

export const version = 27

/** Running sessions and waiting clients rest on these. */
export const triggers = notedBy({
  approvals: ['approval', 'id'],
  approval_answers: ['approval', 'approval_id'],
})

export const sql = `
alter table authorizations add column is_critical integer not null default 0;
alter table authorizations add column approval_required integer not null default 0;
alter table authorizations add column active_quorum integer not null default 1;
alter table authorizations add column inactive_quorum integer not null default 0;
-- seconds; 0: until the asked time is over
alter table authorizations add column approval_timeout integer not null default 0;
alter table authorizations add column single_connection integer not null default 0;
alter table authorizations add column has_comment integer not null default 0;
alter table authorizations add column mandatory_comment integer not null default 0;
alter table authorizations add column has_ticket integer not null default 0;
alter table authorizations add column mandatory_ticket integer not null default 0;
create table authorization_approvers (
  authorization_id text not null references authorizations (id) on delete cascade,
  group_id text not null references user_groups (id),
  primary key (authorization_id, group_id)
) strict, without rowid;
create index authorization_approvers_group on authorization_approvers (group_id);

-- begin_time: null until the answer, if it was asked for at once; duration in milliseconds;
-- connection: the process whose client waits, or empty; session and detail: of a command that is held
create table approvals (
  id text primary key,
  kind text not null,
  state text not null,
  user_id text not null,
  user_name text not null,
  authorization_id text not null,
  authorization_name text not null,
  target text not null,
  service_id text not null,
  account_id text not null,
  login text not null,
  session text not null,
  detail text not null,
  created integer not null,
  begin_time integer,
  duration integer not null,
  answer_by integer not null,
  comment text not null,
  ticket text not null,
  quorum integer not null,
  is_single integer not null,
  uses integer not null,
  connection text not null,
  api_key text not null,
  ended_time integer,
  ended_by text not null,
  ended_comment text not null
) strict;
create index approvals_pending on approvals (answer_by) where state = 'pending';
create index approvals_by_user on approvals (user_id, state);
create index approvals_by_authorization on approvals (authorization_id, created desc);
create index approvals_by_time on approvals (created desc, id);
create table approval_answers (
  approval_id text not null references approvals (id) on delete cascade,
  user_id text not null,
  user_name text not null,
  approved integer not null,
  comment text not null,
  time integer not null,
  api_key text not null,
  primary key (approval_id, user_id)
) strict, without rowid;
alter table sessions add column approval text not null default '';
alter table sessions add column comment text not null default '';
alter table sessions add column ticket text not null default '';
create index sessions_by_approval on sessions (approval) where approval <> '';
alter table checkouts add column approval text not null default '';
create index checkouts_by_approval on checkouts (approval) where approval <> '';
`

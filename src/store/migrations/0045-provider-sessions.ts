/** Sessions that persons have at providers of federated sign-in, on which sign-ins here rest. */
import { type About, postgresTriggers, sqliteTriggers } from './0021-changes.ts'
import { postgresText } from './postgres-text.ts'

export const version = 45

/** Running sessions rest on these. */
const ABOUT: About = { provider_sessions: ['user', 'user_id'] }

export const TRIGGERS = sqliteTriggers(ABOUT)

const tables = `
-- subject and sid: the provider's ids of the person and of the session, sid empty if it has said none;
-- sealed: its tokens; times in milliseconds since the epoch
create table provider_sessions (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  external_auth_id text not null references external_auths (id) on delete cascade,
  subject text not null,
  sid text not null,
  sealed blob,
  begin_time integer not null,
  checked_time integer not null,
  end_time integer not null
) strict;
create index provider_sessions_user on provider_sessions (user_id, id);
create index provider_sessions_subject on provider_sessions (external_auth_id, subject);
create index provider_sessions_sid on provider_sessions (external_auth_id, sid);
alter table sign_ins add column provider_session_id text references provider_sessions (id) on delete cascade;
create index sign_ins_by_provider_session on sign_ins (provider_session_id) where provider_session_id is not null;
`

export const sql = `${tables}${[...TRIGGERS.values()].map((trigger) => `${trigger};\n`).join('')}`

export const postgres = `${postgresText(tables)}${postgresTriggers(ABOUT)}`

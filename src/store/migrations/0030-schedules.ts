/** Next runs of the schedules of domains, each with the expression that it comes from; and what follows a mismatch. */
export const version = 30

export const sql = `
drop table secret_schedules;
-- times in milliseconds; since: when next_run was found
create table secret_schedules (
  domain_id text not null references domains (id) on delete cascade,
  kind text not null,
  period text not null,
  time_zone text not null,
  since integer not null,
  next_run integer not null,
  primary key (domain_id, kind)
) strict;
create index domains_changing on domains (change_policy_id) where change_enabled = 1;

alter table password_change_policies add column reconcile integer not null default 0;
`

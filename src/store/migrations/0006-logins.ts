/**
 * Services of a target group without a stored account: `kind` is `interactive` or `mapping`
 * (model/objects.ts).
 */
export const version = 6

export const sql = `
create table target_group_logins (
  target_group_id text not null references target_groups (id) on delete cascade,
  service_id text not null references services (id),
  kind text not null,
  primary key (target_group_id, service_id, kind)
) strict, without rowid;
create index target_group_logins_service on target_group_logins (service_id);
`

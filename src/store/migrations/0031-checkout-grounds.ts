/** Grounds of checkouts besides their users' rights, and an index of the users that are locked out. */
export const version = 31

export const sql = `
-- empty: none
alter table checkouts add column api_key_id text not null default '';
alter table checkouts add column severed_revision integer not null default 0;
update checkouts set
    api_key_id = coalesce((select k.id from api_keys as k where k.key_name = checkouts.api_key), ''),
    severed_revision = coalesce((select a.severed_revision from accounts as a where a.id = checkouts.account_id), 0)
  where end_time is null;
create index lockouts_locked on lockouts (locked_until) where name is not null;
`

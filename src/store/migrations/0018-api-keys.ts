/** The users that API keys act for, and the keys that made recorded objects. */
export const version = 18

export const sql = `
-- 0: for anybody, as the keys that were there before
alter table api_keys add column is_limited integer not null default 0;
-- JSON object: the rights of who made it act for others; null: of a key that was there before
alter table api_keys add column reach text;
create table api_key_users (
  api_key_id text not null references api_keys (id) on delete cascade,
  user_id text not null references users (id) on delete cascade,
  primary key (api_key_id, user_id)
) strict, without rowid;
create index api_key_users_by_user on api_key_users (user_id);
create table api_key_groups (
  api_key_id text not null references api_keys (id) on delete cascade,
  group_id text not null references user_groups (id) on delete cascade,
  primary key (api_key_id, group_id)
) strict, without rowid;
create index api_key_groups_by_group on api_key_groups (group_id);
alter table sessions add column api_key text not null default '';
alter table checkouts add column api_key text not null default '';
-- what a name looks like, where that is not its key
alter table users add column look text;
create index users_by_look on users (look) where look is not null;
`

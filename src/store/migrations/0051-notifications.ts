/** Chosen events that go to a webhook or by mail. */
export const version = 51

export const sql = `
create table notifications (
  id text primary key,
  notification_name text not null,
  name_key text not null unique,
  description text not null,
  type text not null,
  is_disabled integer not null,
  -- JSON array of codes, or of "auth.*"
  events text not null,
  severity text not null,
  -- JSON object
  options text not null,
  -- JSON array of the names of the secrets that are set
  secrets text not null,
  secret_revision integer not null
) strict;
create table notification_secrets (
  notification_id text not null references notifications (id) on delete cascade,
  name text not null,
  sealed blob not null,
  primary key (notification_id, name)
) strict;
create table notification_user_groups (
  notification_id text not null references notifications (id) on delete cascade,
  group_id text not null references user_groups (id),
  primary key (notification_id, group_id)
) strict;
create index notification_user_groups_group on notification_user_groups (group_id);
create table notification_target_groups (
  notification_id text not null references notifications (id) on delete cascade,
  group_id text not null references target_groups (id),
  primary key (notification_id, group_id)
) strict;
create index notification_target_groups_group on notification_target_groups (group_id);
`

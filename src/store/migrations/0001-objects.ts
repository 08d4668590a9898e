/**
 * The first schema. Names are compared by `name_key` (model/names.ts); lists of words are JSON in a text
 * column, relations between objects are separate tables. Times are milliseconds since the epoch.
 */
export const version = 1

export const sql = `
create table settings (
  name text primary key,
  value blob not null
) strict, without rowid;

create table users (
  id text primary key,
  user_name text not null,
  name_key text not null unique,
  display_name text not null,
  email text not null,
  profile text not null,
  user_auths text not null,
  ssh_public_keys text not null,
  is_disabled integer not null,
  expiration_date integer,
  ip_source text not null,
  password_hash text
) strict;

create table user_groups (
  id text primary key,
  group_name text not null,
  name_key text not null unique,
  description text not null
) strict;

create table user_group_members (
  group_id text not null references user_groups (id) on delete cascade,
  user_id text not null references users (id) on delete cascade,
  primary key (group_id, user_id)
) strict, without rowid;
create index user_group_members_user on user_group_members (user_id);

create table devices (
  id text primary key,
  device_name text not null,
  name_key text not null unique,
  host text not null,
  description text not null
) strict;

create table services (
  id text primary key,
  device_id text not null references devices (id) on delete cascade,
  service_name text not null,
  name_key text not null,
  protocol text not null,
  port integer not null,
  subprotocols text not null,
  host_key_policy text not null,
  unique (device_id, name_key)
) strict;

create table domains (
  id text primary key,
  domain_name text not null,
  name_key text not null,
  description text not null,
  device_id text references devices (id) on delete cascade
) strict;
create unique index domains_global on domains (name_key) where device_id is null;
create unique index domains_local on domains (device_id, name_key) where device_id is not null;

create table accounts (
  id text primary key,
  account_name text not null,
  name_key text not null,
  account_login text not null,
  domain_id text not null references domains (id),
  description text not null,
  unique (domain_id, name_key)
) strict;
create index accounts_name on accounts (name_key);

create table account_credentials (
  account_id text not null references accounts (id) on delete cascade,
  position integer not null,
  type text not null,
  sealed blob not null,
  primary key (account_id, position),
  unique (account_id, type)
) strict, without rowid;

create table target_groups (
  id text primary key,
  group_name text not null,
  name_key text not null unique,
  description text not null
) strict;

create table target_group_sessions (
  target_group_id text not null references target_groups (id) on delete cascade,
  account_id text not null references accounts (id),
  service_id text not null references services (id),
  primary key (target_group_id, account_id, service_id)
) strict, without rowid;
create index target_group_sessions_account on target_group_sessions (account_id);
create index target_group_sessions_service on target_group_sessions (service_id);

create table target_group_retrievals (
  target_group_id text not null references target_groups (id) on delete cascade,
  account_id text not null references accounts (id),
  primary key (target_group_id, account_id)
) strict, without rowid;
create index target_group_retrievals_account on target_group_retrievals (account_id);

create table authorizations (
  id text primary key,
  user_group_id text not null references user_groups (id),
  target_group_id text not null references target_groups (id),
  description text not null,
  authorize_sessions integer not null,
  authorize_password_retrieval integer not null,
  subprotocols text not null,
  is_recorded integer not null,
  unique (user_group_id, target_group_id)
) strict;
create index authorizations_target_group on authorizations (target_group_id);

create table api_keys (
  id text primary key,
  key_name text not null,
  name_key text not null unique,
  profile text not null,
  ip_source text not null,
  expiration_date integer,
  created_at integer not null,
  sha256 blob unique
) strict;

create table host_keys (
  id text primary key,
  device_id text not null references devices (id) on delete cascade,
  service_id text not null references services (id) on delete cascade,
  key_type text not null,
  fingerprint text not null,
  key text not null,
  first_seen integer not null,
  state text not null,
  unique (service_id, key)
) strict;
create index host_keys_device on host_keys (device_id);

create table checkouts (
  id text primary key,
  account_id text not null references accounts (id) on delete cascade,
  user_id text not null references users (id) on delete cascade,
  begin_time integer not null,
  expires integer not null,
  end_time integer
) strict;
create index checkouts_account on checkouts (account_id, expires);
create index checkouts_user on checkouts (user_id);

create table sessions (
  id text primary key,
  begin_time integer not null,
  end_time integer,
  user_name text not null,
  source_ip text not null,
  protocol text not null,
  subprotocols text not null,
  account text not null,
  domain text not null,
  device text not null,
  service text not null,
  target_host text not null,
  result text,
  reason text,
  authorization_name text not null,
  is_recorded integer not null,
  bytes_in integer not null,
  bytes_out integer not null,
  recording text
) strict;
create index sessions_begin on sessions (begin_time);
create index sessions_current on sessions (begin_time) where end_time is null;

create table audit (
  sequence integer primary key,
  time integer not null,
  code text not null,
  session text,
  json text not null,
  hash blob not null
) strict;
create index audit_session on audit (session, sequence) where session is not null;
`

/** Provisioning by SCIM: users and groups as a domain's provider has described them, and the tokens of providers. */
export const version = 47

export const sql = `
-- null: no provisioning; else what binds a user to a sign-in: external_id or user_name
alter table auth_domains add column scim_identifier text;
create table scim_users (
  id text primary key,
  auth_domain_id text not null references auth_domains (id) on delete cascade,
  -- the person, while there is one
  user_id text references users (id) on delete set null,
  user_name text not null,
  name_key text not null,
  external_id text,
  -- the id that the sign-in has shown, or empty before the first one
  stable_id text not null,
  is_active integer not null,
  -- JSON object of the other attributes
  more text not null,
  -- milliseconds since the epoch
  created integer not null,
  modified integer not null,
  revision integer not null
) strict;
create unique index scim_users_by_name on scim_users (auth_domain_id, name_key);
create unique index scim_users_by_external_id on scim_users (auth_domain_id, external_id) where external_id is not null;
create unique index scim_users_by_stable_id on scim_users (auth_domain_id, stable_id) where stable_id <> '';
create index scim_users_in_order on scim_users (auth_domain_id, id);
create index scim_users_person on scim_users (user_id);
create table scim_groups (
  id text primary key,
  auth_domain_id text not null references auth_domains (id) on delete cascade,
  display_name text not null,
  name_key text not null,
  external_id text,
  created integer not null,
  modified integer not null,
  revision integer not null
) strict;
create unique index scim_groups_by_name on scim_groups (auth_domain_id, name_key);
create unique index scim_groups_by_external_id on scim_groups (auth_domain_id, external_id) where external_id is not null;
create index scim_groups_in_order on scim_groups (auth_domain_id, id);
create table scim_members (
  group_id text not null references scim_groups (id) on delete cascade,
  user_id text not null references scim_users (id) on delete cascade,
  primary key (group_id, user_id)
) strict;
create index scim_members_user on scim_members (user_id);
create table scim_tokens (
  id text primary key,
  auth_domain_id text not null references auth_domains (id) on delete cascade,
  token_name text not null,
  name_key text not null,
  sha256 blob not null unique,
  -- JSON array of networks
  ip_source text not null,
  expiration_date integer,
  created_at integer not null,
  last_used integer,
  last_address text not null
) strict;
create unique index scim_tokens_by_name on scim_tokens (auth_domain_id, name_key);
`

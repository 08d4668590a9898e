/** Servers that judge sign-ins, authentication domains with their mappings, and the persons of the domains. */
export const version = 33

export const sql = `
create table external_auths (
  id text primary key,
  authentication_name text not null,
  name_key text not null unique,
  description text not null,
  type text not null,
  -- JSON array of {host, port}
  servers text not null,
  -- milliseconds
  timeout integer not null,
  -- JSON object
  options text not null,
  -- JSON array of the names of the secrets that are set
  secrets text not null,
  secret_revision integer not null
) strict;
create table external_auth_secrets (
  external_auth_id text not null references external_auths (id) on delete cascade,
  name text not null,
  sealed blob not null,
  primary key (external_auth_id, name)
) strict;

create table auth_domains (
  id text primary key,
  domain_name text not null,
  name_key text not null unique,
  description text not null,
  type text not null,
  is_default integer not null,
  -- JSON object of names of the server's attributes
  attributes text not null,
  default_language text not null
) strict;
create unique index auth_domains_default on auth_domains (is_default) where is_default = 1;
-- factor: 1 is asked first, 2 after it
create table auth_domain_auths (
  auth_domain_id text not null references auth_domains (id) on delete cascade,
  factor integer not null,
  position integer not null,
  external_auth_id text not null references external_auths (id),
  primary key (auth_domain_id, factor, position)
) strict;
create index auth_domain_auths_external on auth_domain_auths (external_auth_id);
create table auth_domain_mappings (
  id text primary key,
  auth_domain_id text not null references auth_domains (id) on delete cascade,
  user_group_id text not null references user_groups (id),
  external_group text not null,
  group_key text not null,
  profile text not null
) strict;
create unique index auth_domain_mappings_once on auth_domain_mappings (auth_domain_id, group_key, user_group_id);
create index auth_domain_mappings_group on auth_domain_mappings (user_group_id);

-- set for persons, who are users of a domain and no local ones; stable_id: the server's id of the person, or empty
alter table users add column auth_domain_id text references auth_domains (id);
alter table users add column stable_id text not null default '';
create index users_of_auth_domain on users (auth_domain_id, stable_id) where auth_domain_id is not null;
-- mappings that a person matched at the last sign-in
create table person_mappings (
  user_id text not null references users (id) on delete cascade,
  mapping_id text not null references auth_domain_mappings (id) on delete cascade,
  primary key (user_id, mapping_id)
) strict;
create index person_mappings_mapping on person_mappings (mapping_id);
`

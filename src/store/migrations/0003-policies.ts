/**
 * Profiles and policies as objects, including those from the factory: their ids are fixed (model/objects.ts),
 * and the rights of a factory profile come from the program, not from its row. `secret_revision` counts how
 * often a secret was set, so that a change of only the secret is a change of the object too.
 */
export const version = 3

export const sql = `
create table profiles (
  id text primary key,
  profile_name text not null,
  name_key text not null unique,
  description text not null,
  rights text not null,
  is_factory integer not null
) strict;
insert into profiles (id, profile_name, name_key, description, rights, is_factory) values
  ('00000000000000000000000101', 'product_administrator', 'product_administrator', 'everything', '{}', 1),
  ('00000000000000000000000102', 'operator', 'operator', 'provisions, and ends sessions', '{}', 1),
  ('00000000000000000000000103', 'auditor', 'auditor', 'reads everything', '{}', 1),
  ('00000000000000000000000104', 'approver', 'approver', 'answers requests for approval', '{}', 1),
  ('00000000000000000000000105', 'user', 'user', 'uses targets', '{}', 1),
  ('00000000000000000000000106', 'sallyport_access_manager_session_audit',
    'sallyport_access_manager_session_audit', 'gateway: sessions, checkout, approvals and audit', '{}', 1),
  ('00000000000000000000000107', 'sallyport_access_manager_session',
    'sallyport_access_manager_session', 'gateway: sessions, checkout and approvals', '{}', 1),
  ('00000000000000000000000108', 'sallyport_access_manager_audit',
    'sallyport_access_manager_audit', 'gateway: audit of sessions', '{}', 1);

create table checkout_policies (
  id text primary key,
  policy_name text not null,
  name_key text not null unique,
  description text not null,
  enable_lock integer not null,
  max_duration integer not null,
  is_factory integer not null
) strict;
insert into checkout_policies (id, policy_name, name_key, description, enable_lock, max_duration, is_factory)
  values ('00000000000000000000000201', 'default', 'default', 'of accounts that name no other', 0, 3600, 1);

create table connection_policies (
  id text primary key,
  policy_name text not null,
  name_key text not null unique,
  description text not null,
  protocol text not null,
  host_key_policy text not null,
  is_factory integer not null
) strict;
insert into connection_policies (id, policy_name, name_key, description, protocol, host_key_policy, is_factory)
  values ('00000000000000000000000301', 'SSH', 'ssh', 'of services that name no other', 'SSH', 'first_sight', 1);

alter table accounts add column checkout_policy_id text references checkout_policies (id);
update accounts set checkout_policy_id = '00000000000000000000000201';
create index accounts_checkout_policy on accounts (checkout_policy_id);
alter table services add column connection_policy_id text references connection_policies (id);
create index services_connection_policy on services (connection_policy_id);
update services set connection_policy_id = '00000000000000000000000301';
-- what stood for the default follows the policy from now on
update services set host_key_policy = '' where host_key_policy = 'first_sight';

alter table users add column secret_revision integer not null default 0;
alter table accounts add column secret_revision integer not null default 0;
create index users_profile on users (profile);

create table idempotency_keys (
  key blob primary key,
  request blob not null,
  time integer not null,
  status integer not null,
  location text,
  answer text not null
) strict, without rowid;
create index idempotency_keys_time on idempotency_keys (time);
`

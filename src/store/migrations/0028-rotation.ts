/** Changes of secrets: policies, how each domain's are made, the jobs with their history, and secrets that are not proved yet. */
export const version = 28

export const sql = `
create table password_change_policies (
  id text primary key,
  policy_name text not null,
  name_key text not null unique,
  description text not null,
  password_length integer not null,
  -- null: characters of the class do not occur
  lower_chars integer,
  upper_chars integer,
  digit_chars integer,
  special_chars integer,
  exclude_chars text not null,
  ssh_key_type text not null,
  ssh_key_size integer,
  -- cron expressions
  change_period text,
  check_period text,
  time_zone text not null,
  -- seconds
  max_age integer,
  is_factory integer not null
) strict;
insert into password_change_policies (id, policy_name, name_key, description, password_length, lower_chars,
    upper_chars, digit_chars, special_chars, exclude_chars, ssh_key_type, time_zone, is_factory)
  values ('00000000000000000000000501', 'default', 'default', 'of domains that name no other', 24, 1, 1, 1, 1,
    '', 'ed25519', 'UTC', 1);

-- empty: none
alter table domains add column change_plugin text not null default '';
alter table domains add column change_enabled integer not null default 0;
alter table domains add column change_policy_id text;
-- JSON object
alter table domains add column change_parameters text not null default '{}';
alter table domains add column admin_account_id text;

alter table accounts add column auto_change integer not null default 1;
alter table accounts add column secret_state text not null default 'ok';
-- null: not known
alter table accounts add column secret_changed integer;
alter table accounts add column secret_checked integer;
-- the last revision of the secret that ends the sessions begun before it
alter table accounts add column severed_revision integer not null default 0;

alter table checkout_policies add column change_at_checkin integer not null default 0;

create table secret_jobs (
  id text primary key,
  account_id text not null references accounts (id) on delete cascade,
  type text not null,
  kind text not null,
  cause text not null,
  user_name text not null,
  is_forced integer not null,
  step text not null,
  due integer not null,
  attempts integer not null,
  lease integer not null,
  created integer not null,
  ended integer,
  outcome text not null,
  code text not null,
  message text not null
) strict;
-- one at a time
create unique index secret_jobs_open on secret_jobs (account_id, type, kind) where ended is null;
create index secret_jobs_due on secret_jobs (due) where ended is null;
create index secret_jobs_history on secret_jobs (account_id, created desc, id);

-- role: wanted, by an administrator; next, which a target may have; doubtful, which it has refused and may have all the same;
-- previous, which it had
create table pending_secrets (
  account_id text not null references accounts (id) on delete cascade,
  type text not null,
  role text not null,
  sealed blob not null,
  primary key (account_id, type, role)
) strict;

-- until when the runs of a domain's schedules have been made
create table secret_schedules (
  domain_id text primary key references domains (id) on delete cascade,
  changed integer not null,
  checked integer not null
) strict;
`

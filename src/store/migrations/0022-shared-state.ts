/** State of sign-ins that outlives a process, and that several brokers on one database share. */
export const version = 22

export const sql = `
-- sign-ins by cookie; token_hash: SHA-256 of the cookie's value
create table sign_ins (
  id text primary key,
  token_hash blob not null unique,
  user_id text not null references users (id) on delete cascade,
  secret_revision integer not null,
  begin_time integer not null,
  last_use integer not null
) strict;
create index sign_ins_by_user on sign_ins (user_id, id);
create index sign_ins_by_begin on sign_ins (begin_time);
create index sign_ins_by_use on sign_ins (last_use);

-- one-time tickets; sealed: the password; ticket: JSON of user, basis and target
create table tickets (
  id text primary key,
  user_id text not null,
  protocol text not null,
  address text not null,
  expires integer not null,
  sealed blob not null,
  ticket text not null
) strict;
create index tickets_by_user on tickets (user_id);
create index tickets_by_address on tickets (address, protocol);
create index tickets_by_end on tickets (expires);

-- failures of sign-ins; key: SHA-256 of a network, or of a network and a name
create table lockouts (
  key blob primary key,
  failures integer not null,
  since integer not null,
  locked_until integer not null,
  expires integer not null
) strict;
create index lockouts_by_end on lockouts (expires);

-- sign-ins in progress that could lock if they failed
create table lockout_attempts (
  id text primary key,
  pair blob not null,
  address blob not null,
  expires integer not null
) strict;
create index lockout_attempts_by_pair on lockout_attempts (pair);
create index lockout_attempts_by_address on lockout_attempts (address);
create index lockout_attempts_by_end on lockout_attempts (expires);
`

/** Passwords that servers have accepted, for while they are away; last sign-ins; wrong codes in all. */
export const version = 42

export const sql = `
-- seconds; 0: nothing is kept
alter table external_auths add column offline integer not null default 0;
-- sealed: an argon2id hash. time: milliseconds since the epoch; tries: wrong ones since
create table offline_proofs (
  user_id text not null references users (id) on delete cascade,
  external_auth_id text not null references external_auths (id) on delete cascade,
  sealed blob not null,
  time integer not null,
  secret_revision integer not null,
  tries integer not null,
  primary key (user_id, external_auth_id)
) strict;
create index offline_proofs_by_auth on offline_proofs (external_auth_id);
-- milliseconds since the epoch
create table last_sign_ins (
  user_id text primary key references users (id) on delete cascade,
  time integer not null
) strict;
-- codes since the last right one that no pause forgives
alter table second_factors add column failed integer not null default 0;
`

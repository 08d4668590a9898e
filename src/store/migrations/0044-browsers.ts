/** Where sign-ins by cookie came from, and security keys as second factors in browsers. */
export const version = 44

export const sql = `
-- client_address, method and agent: shown to the user
alter table sign_ins add column client_address text not null default '';
alter table sign_ins add column method text not null default '';
alter table sign_ins add column agent text not null default '';

-- credential_id, public_key (COSE) and sign_count: as WebAuthn has them; transports: apart by blanks
create table security_keys (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  key_name text not null,
  credential_id blob not null unique,
  public_key blob not null,
  sign_count integer not null,
  transports text not null,
  created integer not null,
  last_use integer
) strict;
create index security_keys_by_user on security_keys (user_id, id);
`

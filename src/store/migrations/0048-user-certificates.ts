/** Certificates that the bastion's own authority has made for keys of users that had signed in. */
import { type About, postgresTriggers, sqliteTriggers } from './0021-changes.ts'
import { postgresText } from './postgres-text.ts'

export const version = 48

/** Sessions that rest on a certificate end with its row. */
const ABOUT: About = { user_certificates: ['user', 'user_id'] }

export const TRIGGERS = sqliteTriggers(ABOUT)

const tables = `
create table user_certificates (
  id text primary key,
  user_id text not null references users (id) on delete cascade,
  -- a decimal number of 64 bits
  serial text not null unique,
  -- the user's at that time: another password ends the certificate
  secret_revision integer not null,
  -- SHA-256 of the certified key, as OpenSSH shows it
  fingerprint text not null,
  -- the client's
  address text not null,
  -- of the sign-in, if a provider has judged it
  provider_session_id text references provider_sessions (id) on delete cascade,
  -- milliseconds since the epoch
  begin_time integer not null,
  end_time integer not null
) strict;
create index user_certificates_by_user on user_certificates (user_id, end_time);
create index user_certificates_by_end on user_certificates (end_time);
create index user_certificates_by_provider_session on user_certificates (provider_session_id)
  where provider_session_id is not null;
`

export const postgres = `${postgresText(tables)}${postgresTriggers(ABOUT)}`

export const sql = `${tables}${[...TRIGGERS.values()].map((trigger) => `${trigger};\n`).join('')}`

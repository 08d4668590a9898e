/**
 * Domains that certify their sessions: the authority's public key with the domain, the sealed private one
 * apart.
 */
export const version = 5

export const sql = `
alter table domains add column ca_public_key text;
alter table domains add column secret_revision integer not null default 0;

create table domain_authorities (
  domain_id text primary key references domains (id) on delete cascade,
  sealed blob not null
) strict, without rowid;
`

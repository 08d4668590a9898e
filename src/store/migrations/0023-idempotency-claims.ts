/** Requests with an Idempotency-Key that are in progress, in whichever process. */
export const version = 23

export const sql = `
-- claim: names the request with that key that is at work
create table idempotency_claims (
  key blob primary key,
  claim text not null,
  expires integer not null
) strict;
create index idempotency_claims_by_end on idempotency_claims (expires);
`

/** Invitations of guests to running sessions, which wait for their guests. */
export const version = 24

export const sql = `
-- address: that the guest has to come from, or empty; sealed: the password
create table invitations (
  id text primary key,
  session text not null,
  address text not null,
  expires integer not null,
  sealed blob not null
) strict;
create index invitations_by_session on invitations (session);
create index invitations_by_address on invitations (address);
create index invitations_by_end on invitations (expires);
`

/** Authorizations whose sessions have to be watched. */
export const version = 29

export const sql = `
alter table authorizations add column four_eyes integer not null default 0;
`

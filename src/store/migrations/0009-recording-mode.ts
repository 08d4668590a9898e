/** How strictly the sessions of an authorization are recorded. */
export const version = 9

export const sql = `
alter table authorizations add column recording_mode text not null default 'standard';
`

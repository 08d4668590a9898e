/** The recording mode of an authorization's sessions. */
export const version = 9

export const sql = `
alter table authorizations add column recording_mode text not null default 'standard';
`

/** Options of connection policies, as JSON of the differences to the defaults. */
export const version = 4

export const sql = `
alter table connection_policies add column ssh_options text not null default '{}';
`

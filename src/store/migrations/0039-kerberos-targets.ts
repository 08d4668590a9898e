/** Realms and KDCs of domains, and the names under which they know the services of devices. */
export const version = 39

export const sql = `
alter table domains add column kerberos text not null default '';
alter table services add column kerberos_host text not null default '';
`

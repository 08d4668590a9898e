/** Sealed password hashes. Hashes in clear text are sealed, and removed there, when the vault is opened. */
export const version = 16

export const sql = `
alter table users add column sealed_password_hash blob;
`

/** Servers that judge a second factor of local users, and what servers want back in the accounting of sessions. */
export const version = 43

export const sql = `
-- Names, as in user_auths.
alter table users add column secondary_auth text not null default '[]';
-- [{"externalAuthId": ID, "values": [BASE64]}]
alter table sessions add column accounting_classes text not null default '[]';
`

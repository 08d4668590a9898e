/** SSH keys that count as both factors, since their token checks a PIN or a finger. */
export const version = 37

export const sql = `
alter table profiles add column second_factor_keys integer not null default 0;
alter table user_groups add column second_factor_keys integer not null default 0;
`

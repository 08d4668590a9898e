/** Second factors that profiles and user groups require. */
export const version = 35

export const sql = `
-- none or required
alter table profiles add column second_factor text not null default 'none';
alter table user_groups add column second_factor text not null default 'none';
`

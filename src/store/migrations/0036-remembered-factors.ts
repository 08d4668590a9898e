/** Second factors that are not asked for again at once from the same address. */
export const version = 36

export const sql = `
-- seconds; 0: asked for at each sign-in
alter table profiles add column second_factor_remember integer not null default 0;
alter table user_groups add column second_factor_remember integer not null default 0;
-- since: milliseconds since the epoch; secret_revision: the user's at that time
create table remembered_factors (
  user_id text not null references second_factors (user_id) on delete cascade,
  address text not null,
  since integer not null,
  secret_revision integer not null,
  primary key (user_id, address)
) strict;
`

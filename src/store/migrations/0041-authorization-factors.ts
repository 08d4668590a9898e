/** Second factors that authorizations require, and sign-ins that have proved one. */
export const version = 41

export const sql = `
-- none or required
alter table authorizations add column second_factor text not null default 'none';
-- seconds; 0: asked for on each connection
alter table authorizations add column second_factor_remember integer not null default 0;
alter table authorizations add column second_factor_keys integer not null default 0;
-- 1: a code was right at this sign-in
alter table sign_ins add column has_factor integer not null default 0;
-- first_factor: what was proved beside the code; rows without it say nothing, and are asked for once more
drop table remembered_factors;
create table remembered_factors (
  user_id text not null references second_factors (user_id) on delete cascade,
  address text not null,
  first_factor text not null,
  since integer not null,
  secret_revision integer not null,
  primary key (user_id, address, first_factor)
) strict;
`

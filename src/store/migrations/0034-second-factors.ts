/** Second factors of users, and their recovery codes. */
export const version = 34

export const sql = `
create table second_factors (
  user_id text primary key references users (id) on delete cascade,
  sealed blob not null,
  -- milliseconds since the epoch; enrolled: null until a first code has confirmed it
  begun integer not null,
  enrolled integer,
  -- number of the last time step whose code was used, and steps that the authenticator's clock is ahead
  last_step integer not null,
  drift integer not null,
  -- codes since the last right one, and when the last one came
  tries integer not null,
  tried integer not null
) strict;
-- digest: SHA-256 of the user and the code
create table recovery_codes (
  user_id text not null references second_factors (user_id) on delete cascade,
  digest blob not null,
  primary key (user_id, digest)
) strict;
`

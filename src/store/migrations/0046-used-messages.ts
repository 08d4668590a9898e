/** Messages of identity providers that have signed a person in, until they prove nothing any more. */
import { postgresText } from './postgres-text.ts'

export const version = 46

export const sql = `
-- end_time: milliseconds since the epoch
create table used_messages (
  digest blob primary key,
  end_time integer not null
) strict;
create index used_messages_by_end on used_messages (end_time);
`

export const postgres = postgresText(sql)

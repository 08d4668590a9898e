/**
 * Timeframes, and the user groups that have one: a group without any has `allthetime`. Locks of users, set by an
 * administrator, and the user names of lock-outs, by which an administrator lifts one.
 */

import { type About, postgresTriggers, sqliteTriggers } from './0021-changes.ts'
import { postgresText } from './postgres-text.ts'

export const version = 26

const ABOUT: About = {
  timeframes: ['everyone'],
  user_group_timeframes: ['user_group', 'group_id'],
}

export const TRIGGERS = sqliteTriggers(ABOUT)

const tables = `
create table timeframes (
  id text primary key,
  timeframe_name text not null,
  name_key text not null unique,
  description text not null,
  is_overtimable integer not null,
  time_zone text not null,
  periods text not null,
  is_factory integer not null
) strict;
insert into timeframes (id, timeframe_name, name_key, description, is_overtimable, time_zone, periods, is_factory)
  values ('00000000000000000000000401', 'allthetime', 'allthetime', 'every day, at every hour', 0, 'UTC',
    '[{"startTime":"00:00","endTime":"24:00","weekDays":[]}]', 1);

create table user_group_timeframes (
  group_id text not null references user_groups (id) on delete cascade,
  timeframe_id text not null references timeframes (id),
  primary key (group_id, timeframe_id)
) strict;
create index user_group_timeframes_timeframe on user_group_timeframes (timeframe_id);

alter table users add column is_locked integer not null default 0;
-- SHA-256 of the user's name; null for a network
alter table lockouts add column name blob;
create index lockouts_by_name on lockouts (name);
`

export const sql = `${tables}${[...TRIGGERS.values()].map((trigger) => `${trigger};\n`).join('')}`

export const postgres = `${postgresText(tables)}${postgresTriggers(ABOUT)}`

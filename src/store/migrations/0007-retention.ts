/** Legal hold, and an index of the recordings that retention may delete (`MAY_BE_DELETED` of sessions.ts). */
export const version = 7

export const sql = `
alter table sessions add column legal_hold text;
create index sessions_deletable on sessions (begin_time)
  where legal_hold is null and (recording ->> '$.state') in ('sealed', 'recovered', 'failed');
`

/** The index follows in 0020, over columns. */
export const postgres = 'alter table sessions add column legal_hold text collate "C";'

/**
 * Indexes that 100,000 accounts and a million sessions need: for lists, for searches by auditors, and for the
 * sessions that each start looks for (`IS_UNSEALED` of sessions.ts).
 */
export const version = 19

const INDEXES = `
create index services_name on services (name_key, id);
create index sessions_account on sessions (lower(account), begin_time);
create index sessions_source on sessions (source_ip, begin_time);
create index sessions_result on sessions (lower(result), begin_time);
`

export const sql = `${INDEXES}
create index sessions_unsealed on sessions (begin_time)
  where end_time is not null and (recording ->> '$.state') = 'failed' and (recording ->> '$.digest') = '';
`

/** The last one follows in 0020, over columns. */
export const postgres = INDEXES

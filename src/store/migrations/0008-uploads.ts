/** Pending work on the copies of recordings in an object store: a row for each session that has ended. */
export const version = 8

export const sql = `
create table uploads (
  session_id text primary key,
  begin_time integer not null,
  state text not null,
  due integer not null,
  failures integer not null default 0,
  upload text,
  size integer,
  sha256 text,
  stored integer
) strict, without rowid;
create index uploads_due on uploads (due);
create index uploads_state on uploads (state);
`

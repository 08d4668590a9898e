/**
 * What recordings are searched, summed and found by has columns of its own: members of a JSON text are written
 * differently by each engine, and had to be read for each row. PostgreSQL's databases begin here with no rows; what
 * only they need comes with it: a function for searches, and who has written (postgres/writers.ts).
 */
export const version = 20

const INDEXES = `
create index sessions_deletable on sessions (begin_time)
  where legal_hold is null and recording_state in ('sealed', 'recovered', 'failed');
create index sessions_unsealed on sessions (begin_time)
  where end_time is not null and recording_state = 'failed' and recording_digest = '';
`

export const sql = `
alter table sessions add column recording_state text;
alter table sessions add column recording_size integer;
alter table sessions add column recording_digest text;
update sessions set recording_state = recording ->> '$.state', recording_size = recording ->> '$.size',
  recording_digest = recording ->> '$.digest' where recording is not null;
drop index sessions_deletable;
drop index sessions_unsealed;
${INDEXES}
`

export const postgres = `
alter table sessions add column recording_state text collate "C";
alter table sessions add column recording_size bigint;
alter table sessions add column recording_digest text collate "C";
${INDEXES}
create table writers (
  id text collate "C" primary key,
  version bigint not null,
  seen bigint not null
);

-- several parts of the operator ~ (search/evaluate.ts)
create function is_like(value text, parts text[]) returns boolean language plpgsql immutable strict as $$
declare
  number int := array_length(parts, 1);
  folded text := lower(value collate "C");
  rest text;
  place int;
begin
  if value = '' or not starts_with(folded, parts[1]) then
    return false;
  end if;
  rest := substr(folded, length(parts[1]) + 1);
  for i in 2 .. number - 1 loop
    place := strpos(rest, parts[i]);
    if place = 0 then
      return false;
    end if;
    rest := substr(rest, place + length(parts[i]));
  end loop;
  return length(parts[number]) <= length(rest) and right(rest, length(parts[number])) = parts[number];
end $$;
`

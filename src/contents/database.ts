/**
 * The index in SQLite: FTS5 tables in a file of its own. A line's rowid is its session's number and its own
 * number within the session, so that the newest sessions are found first, and the lines of one session are a
 * range.
 *
 * The file holds clear text. Deleted text is overwritten (`secure_delete`, of the pages and of FTS5's own).
 */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { CONTENT_FIELDS, type ContentField, type ContentTest } from '../search/words.ts'
import {
  type ContentEvent,
  type ContentLine,
  type Extent,
  type FoundSessions,
  MAX_MATCHES,
  MAX_SESSIONS_FOUND,
  type Match,
  type RecordedLines,
} from './contents.ts'

/** Limit of the rows of one session in one table. */
const ROWS = 2 ** 20
/** Row number from which on rows are of the recording; lower ones are of events. */
const RECORDED = 2 ** 19
/** Time that a writer waits for the other one. */
const BUSY_TIMEOUT_MS = 15_000
/**
 * Lines of one session that are skipped one by one; seeking the next session costs as much as some hundred.
 */
const PASSED_OVER = 512
/** Time limit of one comparison's search for sessions. */
const MAX_MS = 2000
/** Words of an excerpt. */
const EXCERPT = 32

/** A new version rebuilds the file: to be raised with the schema, or with the indexed content. */
const VERSION = 1

const table = (field: ContentField) =>
  `create virtual table "${field}" using fts5(text, at unindexed, channel unindexed, columnsize=0, tokenize='unicode61 remove_diacritics 2');
   insert into "${field}"("${field}", rank) values('secure-delete', 1);`

const SCHEMA = `
create table state (name text primary key, value text not null) strict;
create table sessions (
  number integer primary key,
  id text not null unique,
  begin integer not null,
  lines integer not null default 0,
  digest text,
  is_partial integer not null default 0,
  is_gone integer not null default 0
) strict;
create index sessions_begin on sessions (begin);
${CONTENT_FIELDS.map(table).join('\n')}`

/** The index was built by another version, or in another mode. */
export class OutdatedError extends Error {
  override readonly name = 'OutdatedError'
}

interface SessionRow {
  number: number
  begin: number
  lines: number
  digest: string | null
  is_partial: number
  is_gone: number
}

export class ContentDatabase {
  readonly #database: DatabaseSync
  readonly #now: () => number

  /**
   * Creates the file, with mode 0600, if there is none. `mode` selects the indexed content. `now`:
   * milliseconds since any moment, never decreasing. @throws OutdatedError if the file was built by another
   * version or in another mode
   */
  constructor(path: string, mode: string, now: () => number = () => performance.now()) {
    closeSync(openSync(path, 'a', 0o600))
    this.#now = now
    this.#database = new DatabaseSync(path, { timeout: BUSY_TIMEOUT_MS })
    try {
      this.#database.exec(
        'pragma journal_mode = wal; pragma synchronous = normal; pragma secure_delete = on; pragma cache_size = -16384',
      )
      this.#transaction(() => this.#prepare(`${VERSION} ${mode}`))
    } catch (error) {
      this.#database.close()
      throw error
    }
  }

  close(): void {
    this.#database.close()
  }

  /** Returns the last row of the audit log whose events are in the index, or 0 if none. */
  sequence(): number {
    return Number(this.#state('sequence') ?? 0)
  }

  /** Adds events and stores `sequence` as their last row, in one transaction. */
  addEvents(events: readonly ContentEvent[], sequence: number): void {
    this.#transaction(() => {
      for (const event of events) this.#addEvent(event)
      this.#setState('sequence', String(sequence))
    })
    if (events.some(({ kind }) => kind === 'gone')) this.#truncateLog()
  }

  /** Replaces a session's lines by those of its recording. Does nothing if the recording was deleted. */
  putRecording(recorded: RecordedLines): void {
    const { session, begin, digest, isPartial } = recorded
    this.#transaction(() => {
      const { number, is_gone } = this.#ensure(session, begin)
      if (is_gone !== 0) return
      this.#remove(number, RECORDED)
      const first = number * ROWS + RECORDED
      this.#insert('output', first, recorded.output)
      this.#insert('file', first, recorded.files)
      this.#insert('command', first, this.#unknown(number, recorded.commands))
      this.#database
        .prepare('update sessions set digest = ?, is_partial = ? where number = ?')
        .run(digest, Number(isPartial), number)
    })
  }

  /** Returns whether there is nothing to do for this recording: it is indexed, or must not be. */
  has(session: string, digest: string): boolean {
    const found = this.#session(session)
    return found !== undefined && (found.is_gone !== 0 || found.digest === digest)
  }

  extent(session: string): Extent {
    const found = this.#session(session)
    if (!found || found.digest === null) return 'events'
    return found.is_partial === 0 ? 'full' : 'partial'
  }

  sessionsWith(test: ContentTest, between?: { from: number; to: number }): FoundSessions {
    const { first, last } = this.#numbers(between)
    const numbers: number[] = []
    const deadline = this.#now() + MAX_MS
    const rows = this.#database.prepare(
      `select rowid from "${test.field}" where "${test.field}" match ? and rowid >= ? and rowid < ? order by rowid desc`,
    )
    for (let below: number | undefined = (last + 1) * ROWS; below !== undefined; ) {
      const found: { below: number | undefined } = { below: undefined }
      let passed = 0
      for (const { rowid } of rows.iterate(matchOf(test), first * ROWS, below)) {
        const number = Math.floor(Number(rowid) / ROWS)
        if (number !== numbers.at(-1)) {
          numbers.push(number)
          passed = 0
          if (numbers.length > MAX_SESSIONS_FOUND) return 'too_many'
          if (this.#now() > deadline) return 'too_slow'
        } else if (++passed > PASSED_OVER) {
          found.below = number * ROWS
          break
        }
      }
      below = found.below
    }
    return this.#ids(numbers, between)
  }

  matches(session: string, tests: readonly ContentTest[]): Match[] {
    const found = this.#session(session)
    if (!found) return []
    const range = { from: found.number * ROWS, to: (found.number + 1) * ROWS }
    return this.#matches(tests, range, 'asc', MAX_MATCHES).sort(
      (a, b) => a.at - b.at || CONTENT_FIELDS.indexOf(a.field) - CONTENT_FIELDS.indexOf(b.field),
    )
  }

  newest(tests: readonly ContentTest[], limit: number): Match[] {
    const range = { from: 0, to: Number.MAX_SAFE_INTEGER }
    const newestFirst = this.#matches(tests, range, 'desc', Math.min(limit, MAX_MATCHES))
    return newestFirst
      .sort((a, b) => (a.session === b.session ? b.at - a.at : a.session < b.session ? 1 : -1))
      .slice(0, limit)
  }

  #matches(
    tests: readonly ContentTest[],
    { from, to }: { from: number; to: number },
    order: 'asc' | 'desc',
    limit: number,
  ): Match[] {
    const found = new Map<string, Match>()
    for (const test of tests) {
      const { field } = test
      const rows = this.#database
        .prepare(
          `select c.rowid as row, c.at, c.channel, snippet("${field}", 0, '', '', '…', ${EXCERPT}) as excerpt, s.id as session
           from "${field}" as c join sessions as s on s.number = c.rowid / ${ROWS}
           where "${field}" match ? and c.rowid >= ? and c.rowid < ? order by c.rowid ${order} limit ?`,
        )
        .all(matchOf(test), from, to, limit)
      for (const { row, at, channel, excerpt, session } of rows) {
        found.set(`${field} ${row}`, {
          session: String(session),
          field,
          at: Number(at),
          channel: channel === null ? undefined : Number(channel),
          excerpt: String(excerpt),
        })
      }
    }
    return [...found.values()]
  }

  #addEvent(event: ContentEvent): void {
    const { session } = event
    if (event.kind === 'begin') {
      this.#ensure(session, event.begin)
      return
    }
    const found = this.#session(session)
    if (event.kind === 'gone') {
      const { number } = found ?? this.#ensure(session, 0)
      this.#remove(number, 0)
      this.#database
        .prepare('update sessions set is_gone = 1, digest = null, is_partial = 0 where number = ?')
        .run(number)
    } else if (event.kind === 'back') {
      if (found) this.#database.prepare('update sessions set is_gone = 0 where number = ?').run(found.number)
    } else if (found && found.is_gone === 0 && found.lines < RECORDED) {
      const { field, text, time } = event
      const at = Math.max(0, time - found.begin)
      this.#insert(field, found.number * ROWS + found.lines, [{ at, channel: undefined, text }])
      this.#database.prepare('update sessions set lines = lines + 1 where number = ?').run(found.number)
    }
  }

  #insert(field: ContentField, row: number, lines: readonly ContentLine[]): void {
    const statement = this.#database.prepare(
      `insert into "${field}"(rowid, text, at, channel) values (?, ?, ?, ?)`,
    )
    for (const [index, { text, at, channel }] of lines.slice(0, RECORDED).entries()) {
      statement.run(row + index, text, at, channel ?? null)
    }
  }

  /** Returns the commands that are not known from events. */
  #unknown(number: number, commands: readonly ContentLine[]): ContentLine[] {
    const known = new Map<string, number>()
    const rows = this.#database.prepare('select text from command where rowid >= ? and rowid < ?')
    for (const { text } of rows.iterate(number * ROWS, number * ROWS + RECORDED)) {
      known.set(String(text), (known.get(String(text)) ?? 0) + 1)
    }
    return commands.filter(({ text }) => {
      const left = known.get(text) ?? 0
      known.set(text, left - 1)
      return left <= 0
    })
  }

  #remove(number: number, from: number): void {
    for (const field of CONTENT_FIELDS) {
      this.#database
        .prepare(`delete from "${field}" where rowid >= ? and rowid < ?`)
        .run(number * ROWS + from, (number + 1) * ROWS)
    }
  }

  #session(id: string): SessionRow | undefined {
    return this.#database.prepare('select * from sessions where id = ?').get(id) as SessionRow | undefined
  }

  #ensure(id: string, begin: number): SessionRow {
    this.#database
      .prepare('insert into sessions (id, begin) values (?, ?) on conflict do nothing')
      .run(id, begin)
    return this.#session(id)!
  }

  #numbers(between: { from: number; to: number } | undefined): { first: number; last: number } {
    const where = between ? 'where begin >= ? and begin < ?' : ''
    const { first, last } = this.#database
      .prepare(`select min(number) as first, max(number) as last from sessions ${where}`)
      .get(...(between ? [between.from, between.to] : []))!
    return { first: Number(first ?? 1), last: Number(last ?? 0) }
  }

  #ids(numbers: readonly number[], between: { from: number; to: number } | undefined): string[] {
    const within = between ? 'and begin >= ? and begin < ?' : ''
    return this.#database
      .prepare(`select id from sessions where number in (select value from json_each(?)) ${within}`)
      .all(JSON.stringify(numbers), ...(between ? [between.from, between.to] : []))
      .map(({ id }) => String(id))
  }

  #prepare(mode: string): void {
    const isNew =
      this.#database.prepare("select count(*) as n from sqlite_master where name = 'state'").get()?.['n'] ===
      0
    if (isNew) {
      this.#database.exec(SCHEMA)
      this.#setState('mode', mode)
    } else if (this.#state('mode') !== mode) {
      throw new OutdatedError(`the index over sessions was made otherwise: expected "${mode}"`)
    }
  }

  #state(name: string): string | undefined {
    const row = this.#database.prepare('select value from state where name = ?').get(name)
    return row && String(row['value'])
  }

  #setState(name: string, value: string): void {
    this.#database
      .prepare('insert into state values (?, ?) on conflict do update set value = excluded.value')
      .run(name, value)
  }

  /** Truncates the write-ahead log, which also contains deleted text. */
  #truncateLog(): void {
    this.#database.exec('pragma wal_checkpoint(truncate)')
  }

  #transaction(work: () => void): void {
    this.#database.exec('begin immediate')
    try {
      work()
      this.#database.exec('commit')
    } catch (error) {
      if (this.#database.isTransaction) this.#database.exec('rollback')
      throw error
    }
  }
}

/**
 * Returns the test in FTS5's query language. A text in quotes is only split into words: it has no operators.
 */
function matchOf({ phrases }: ContentTest): string {
  return phrases
    .map(({ text, isBeginning }) => `"${text.replaceAll('"', '""')}"${isBeginning ? ' *' : ''}`)
    .join(' AND ')
}

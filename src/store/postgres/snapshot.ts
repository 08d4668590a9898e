/**
 * All rows of a PostgreSQL database as of one moment, written into a file of SQLite that has the same tables: so a
 * copy is the same thing for both engines. A server's own programs are not needed, and their versions do not matter.
 */
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import { StoreError } from '../engine/errors.ts'
import { listOf, quoted, selectAll, type Table, tablesOf } from '../engine/tables.ts'
import type { Migration } from '../engine/versions.ts'
import { requireUsable } from './migrate.ts'
import { once } from './once.ts'
import { Primary } from './primary.ts'

/** Rows in memory at a time. */
export const ROWS = 500

export interface SnapshotOptions {
  migrations: readonly Migration[]
  /** Stops the copy between two pieces. */
  signal: AbortSignal
}

/**
 * Copies all rows into the file at `path`, whose tables are those of the newest migration. The server's writers go
 * on meanwhile. After an error the file is of no use.
 * @throws StoreError, and the signal's reason
 */
export async function snapshotPostgres(
  place: PostgresPlace,
  path: string,
  { migrations, signal }: SnapshotOptions,
): Promise<void> {
  const file = new DatabaseSync(path, { enableForeignKeyConstraints: false })
  try {
    // Nobody else has it, and a half one is thrown away: its caller waits for the disk.
    file.exec('pragma journal_mode = off; pragma synchronous = off')
    await once(place, new Primary(place), async (client) => {
      await client.query('begin isolation level repeatable read read only')
      const version = await requireUsable(client, migrations)
      if (version !== migrations.at(-1)?.version)
        throw new StoreError(`it has schema version ${version ?? 0}: start the broker once`)
      await withoutTriggers(file, async () => {
        for (const table of tablesOf(file)) await copyTable(client, table, file, signal)
      })
      await client.query('commit')
    })
    requireReferences(file)
  } finally {
    file.close()
  }
}

/** Takes the triggers away for the work: its rows have been noted, where they come from. */
async function withoutTriggers(file: DatabaseSync, work: () => Promise<void>): Promise<void> {
  const triggers = file.prepare("select name, sql from sqlite_schema where type = 'trigger'").all()
  file.exec('begin')
  for (const { name } of triggers) file.exec(`drop trigger ${quoted(String(name))}`)
  await work()
  for (const { sql } of triggers) file.exec(String(sql))
  file.exec('commit')
}

async function copyTable(
  client: pg.Client,
  table: Table,
  file: DatabaseSync,
  signal: AbortSignal,
): Promise<void> {
  const { name, columns } = table
  // Of the factory's objects too the database has the present ones.
  file.exec(`delete from ${quoted(name)}`)
  const places = columns.map(() => '?').join(', ')
  const insert = file.prepare(`insert into ${quoted(name)} (${listOf(columns)}) values (${places})`)
  for await (const rows of pieces(client, table)) {
    signal.throwIfAborted()
    for (const row of rows) insert.run(...(row as SQLInputValue[]))
  }
  await copyCounter(client, table, file)
}

/** Yields the rows of a table in the order of its key, ROWS at a time. */
export async function* pieces(client: pg.ClientBase, table: Table): AsyncGenerator<unknown[][]> {
  await client.query(`declare piece no scroll cursor for ${selectAll(table)}`)
  for (;;) {
    const { rows } = await client.query<unknown[]>({ text: `fetch ${ROWS} from piece`, rowMode: 'array' })
    yield rows
    if (rows.length < ROWS) break
  }
  await client.query('close piece')
}

/** A counter may be ahead of all rows that are left. */
async function copyCounter(client: pg.Client, { name, key }: Table, file: DatabaseSync): Promise<void> {
  const counter = await counterOf(client, name, key[0]!)
  if (counter === undefined) return
  const { rows } = await client.query<{ last: number }>(`select last_value as last from ${counter}`)
  file.prepare('delete from sqlite_sequence where name = ?').run(name)
  file.prepare('insert into sqlite_sequence (name, seq) values (?, ?)').run(name, rows[0]?.last ?? 0)
}

/** Returns the name of the sequence that a column counts by, quoted; undefined if it does not count. */
export async function counterOf(
  client: pg.ClientBase,
  table: string,
  column: string,
): Promise<string | undefined> {
  const text = 'select pg_get_serial_sequence($1, $2) as counter'
  const { rows } = await client.query<{ counter: string | null }>(text, [quoted(table), column])
  return rows[0]?.counter ?? undefined
}

function requireReferences(file: DatabaseSync): void {
  const broken = file.prepare('pragma foreign_key_check').get()
  if (broken) throw new StoreError(`its table ${broken['table']} refers to rows that are not there`)
}

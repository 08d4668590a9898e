/**
 * An empty database that a restore fills from a file of SQLite with the same tables, in one transaction: until its
 * commit there is nothing in it, and a broker that starts meanwhile waits. No broker can claim it from the first look
 * to the end.
 */
import type { DatabaseSync } from 'node:sqlite'
import type pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import { StoreError } from '../engine/errors.ts'
import { listOf, quoted, selectAll, type Table, tablesOf } from '../engine/tables.ts'
import type { Migration } from '../engine/versions.ts'
import { Claim } from './claim.ts'
import { isBroken } from './errors.ts'
import { type Commit, isDone } from './lost-answers.ts'
import { makeTables, requireEmpty } from './migrate.ts'
import { inWords, once } from './once.ts'
import { Pool } from './pool.ts'
import { Primary, timelineOf } from './primary.ts'
import { counterOf, pieces, ROWS } from './snapshot.ts'
import { cleaned } from './values.ts'

export interface LoadOptions {
  migrations: readonly Migration[]
  /** Milliseconds since the epoch. */
  now: () => number
}

export class EmptyPostgres {
  readonly #place: PostgresPlace
  readonly #options: LoadOptions
  readonly #pool: Pool
  #claim: Claim | undefined
  #taken: Error | undefined
  #loaded: { client: pg.PoolClient; commit: Commit } | undefined

  private constructor(place: PostgresPlace, primary: Primary, options: LoadOptions) {
    this.#place = place
    this.#options = options
    this.#pool = new Pool(place, primary, 1)
  }

  /**
   * Claims the database.
   * @throws StoreClaimedError if a broker has it, SchemaError if it has tables, or is not for this program
   */
  static async open(place: PostgresPlace, options: LoadOptions): Promise<EmptyPostgres> {
    const primary = new Primary(place)
    const empty = new EmptyPostgres(place, primary, options)
    try {
      await inWords(place, async () => {
        if (primary.isOneOfSeveral) await primary.find()
        empty.#claim = await Claim.open(place, primary, (error) => {
          empty.#taken = error
        })
      })
      await once(place, primary, requireEmpty)
      return empty
    } catch (error) {
      await empty.close()
      throw error
    }
  }

  /**
   * Makes the tables and writes all rows of the file, then reads and compares them. Nothing of it is there before
   * `commit`.
   * @throws StoreError
   */
  async load(file: DatabaseSync): Promise<void> {
    const { migrations, now } = this.#options
    await inWords(this.#place, async () => {
      const client = await this.#pool.take()
      try {
        // Files are moved between this and the commit.
        await client.query('begin; set local idle_in_transaction_session_timeout = 0')
        const { rows } = await client.query<{ xid: string }>('select pg_current_xact_id()::text as xid')
        await makeTables(client, now(), migrations)
        const tables = tablesOf(file)
        await setTriggers(client, 'disable', tables)
        // Without the factory's objects: the file has the present ones.
        for (const { name } of tables.toReversed()) await client.query(`delete from ${quoted(name)}`)
        for (const table of tables) await loadTable(client, table, file)
        await setTriggers(client, 'enable', tables)
        for (const table of tables) await requireSame(client, table, file)
        this.#loaded = { client, commit: { xid: rows[0]!.xid, timeline: timelineOf(client) } }
      } catch (error) {
        client.release(true)
        throw error
      }
    })
  }

  /** @throws StoreError if nothing was stored, or if no server can tell whether it was */
  async commit(): Promise<void> {
    const { client, commit } = this.#loaded!
    if (this.#taken) throw this.#taken
    this.#loaded = undefined
    await inWords(this.#place, async () => {
      try {
        await client.query('commit')
        client.release()
      } catch (error) {
        client.release(true)
        if (isBroken(error) && (await isDone(this.#pool, commit))) return
        throw error
      }
    })
  }

  /** Undoes what was not committed. */
  async close(): Promise<void> {
    this.#loaded?.client.release(true)
    this.#loaded = undefined
    await this.#claim?.release()
    await this.#pool.close()
  }
}

/** Disables or enables the triggers, which would note each row as a change of rights. */
async function setTriggers(
  client: pg.ClientBase,
  how: 'disable' | 'enable',
  tables: readonly Table[],
): Promise<void> {
  for (const { name } of tables) await client.query(`alter table ${quoted(name)} ${how} trigger user`)
}

async function loadTable(client: pg.ClientBase, table: Table, file: DatabaseSync): Promise<void> {
  const { name, columns, key } = table
  const types = await typesOf(client, name)
  const arrays = columns.map((column, at) => `$${at + 1}::${types.get(column)}[]`).join(', ')
  const text = `insert into ${quoted(name)} (${listOf(columns)}) overriding system value select * from unnest(${arrays})`
  for (const rows of rowsOf(file, table))
    await client.query(
      text,
      columns.map((_, at) => rows.map((row) => row[at])),
    )
  const counter = await counterOf(client, name, key[0]!)
  if (counter === undefined) return
  const last = file.prepare('select seq from sqlite_sequence where name = ?').get(name)?.['seq']
  if (last) await client.query('select setval($1, $2)', [counter, last])
}

async function typesOf(client: pg.ClientBase, table: string): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; type: string }>(
    `select attname as name, format_type(atttypid, null) as type from pg_attribute
      where attrelid = $1::regclass and attnum > 0 and not attisdropped`,
    [quoted(table)],
  )
  return new Map(rows.map(({ name, type }) => [name, type]))
}

/** Yields the rows of a file's table in the order of its key, ROWS at a time. */
function* rowsOf(file: DatabaseSync, table: Table): Generator<unknown[][]> {
  const select = file.prepare(selectAll(table))
  select.setReturnArrays(true)
  let rows: unknown[][] = []
  for (const row of select.iterate() as Iterable<unknown>) {
    rows.push((row as unknown[]).map(cleaned))
    if (rows.length < ROWS) continue
    yield rows
    rows = []
  }
  if (rows.length > 0) yield rows
}

/** @throws StoreError if a row of the table is not as in the file */
export async function requireSame(client: pg.ClientBase, table: Table, file: DatabaseSync): Promise<void> {
  const expected = rowsOf(file, table)
  for await (const rows of pieces(client, table)) {
    const wanted = expected.next().value ?? []
    const at = Array.from({ length: Math.max(rows.length, wanted.length) }).findIndex(
      (_, row) => !isSame(rows[row], wanted[row]),
    )
    if (at >= 0) throw new StoreError(`its table ${table.name} differs from what was written into it`)
  }
}

function isSame(row: readonly unknown[] | undefined, other: readonly unknown[] | undefined): boolean {
  if (!row || row.length !== other?.length) return false
  return row.every((value, at) => {
    const wanted = other[at]
    if (value instanceof Uint8Array && wanted instanceof Uint8Array)
      return Buffer.compare(value, wanted) === 0
    return value === wanted
  })
}

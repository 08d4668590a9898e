/** A store in a file of SQLite, opened so that no other process can use it. */
import { chownSync, closeSync, existsSync, openSync, rmSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { isLocked, StoreError } from '../engine/errors.ts'
import { migrate } from '../migrate.ts'
import { quoted, type Side } from './side.ts'
import type { Table } from './tables.ts'
import type { Row, Value } from './values.ts'

/** Milliseconds in which a command beside the broker may end. */
const BUSY_MS = 1000

/**
 * Works on the store in the file, which is made if it `isNew` and missing, and removed again if nothing came into it.
 * @throws StoreError if it is missing, in use, or no database
 */
export async function withSqlite<T>(
  path: string,
  isNew: boolean,
  work: (side: Side) => Promise<T>,
): Promise<T> {
  const isMade = !existsSync(path)
  if (isMade) {
    if (!isNew) throw new StoreError(`there is no database ${path}`)
    make(path)
  }
  const database = opened(path)
  const side = new SqliteSide(path, database)
  let isEmpty = false
  try {
    side.takeAlone()
    return await work(side)
  } catch (error) {
    isEmpty = isMade && (await side.tables()).size === 0
    throw error
  } finally {
    // Its locks end with it, and a transaction that has not been committed is undone.
    database.close()
    if (isEmpty) rmSync(path)
  }
}

function opened(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: BUSY_MS, enableForeignKeyConstraints: true })
  } catch (error) {
    throw new StoreError(`${path}: ${(error as Error).message}`)
  }
}

/** Makes an empty file for the owner of its folder, whose broker is to open it. */
function make(path: string): void {
  const folder = dirname(path)
  if (!existsSync(folder))
    throw new StoreError(`there is no folder ${folder} for the database: make it first`)
  closeSync(openSync(path, 'wx', 0o600))
  const { uid, gid } = statSync(folder)
  if (process.geteuid?.() === 0 && uid !== 0) chownSync(path, uid, gid)
}

class SqliteSide implements Side {
  readonly place: string
  readonly hasZeros = true
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, StatementSync>()

  constructor(path: string, database: DatabaseSync) {
    this.place = path
    this.#database = database
  }

  /** Each process that has the file open holds a lock of it, which this one excludes. */
  takeAlone(): void {
    this.#try(() => {
      for (const pragma of [
        'locking_mode = exclusive',
        'journal_mode = wal',
        'synchronous = full',
        'secure_delete = on',
      ])
        this.#database.exec(`pragma ${pragma}`)
      this.#database.exec('begin exclusive; commit')
    })
  }

  async tables(): Promise<Map<string, readonly string[]>> {
    const rows = await this.run(
      "select t.name, c.name from sqlite_schema as t, pragma_table_info(t.name) as c where t.type = 'table' and t.name not like 'sqlite\\_%' escape '\\'",
    )
    const tables = new Map<string, string[]>()
    for (const [table, column] of rows) {
      const columns = tables.get(String(table)) ?? []
      tables.set(String(table), columns)
      columns.push(String(column))
    }
    return tables
  }

  async migrate(now: number): Promise<void> {
    this.#try(() => migrate(this.#database, now))
  }

  async run(text: string, values: readonly Value[] = []): Promise<Row[]> {
    return this.#try(() => this.#prepared(text).all(...values) as unknown as Row[])
  }

  async insert({ name, columns }: Table, rows: readonly Row[]): Promise<void> {
    const names = columns.map((column) => quoted(column.name)).join(', ')
    const places = columns.map(() => '?').join(', ')
    const statement = this.#prepared(`insert into ${quoted(name)} (${names}) values (${places})`)
    this.#try(() => {
      for (const row of rows) statement.run(...row)
    })
  }

  async clear(tables: readonly Table[]): Promise<void> {
    // Those that refer to others come after them.
    for (const { name } of tables.toReversed()) await this.run(`delete from ${quoted(name)}`)
  }

  async counter({ name }: Table): Promise<bigint> {
    const [row] = await this.run('select seq from sqlite_sequence where name = ?', [name])
    return BigInt(String(row?.[0] ?? 0))
  }

  async setCounter({ name }: Table, value: bigint): Promise<void> {
    await this.run('delete from sqlite_sequence where name = ?', [name])
    await this.run('insert into sqlite_sequence (name, seq) values (?, ?)', [name, value])
  }

  async begin(): Promise<void> {
    this.#try(() => this.#database.exec('begin immediate'))
  }

  async commit(): Promise<void> {
    this.#try(() => this.#database.exec('commit'))
  }

  /** No other process has the file open (`takeAlone`). */
  async requireStillAlone(): Promise<void> {}

  #prepared(text: string): StatementSync {
    const known = this.#statements.get(text)
    if (known) return known
    const statement = this.#try(() => this.#database.prepare(text))
    statement.setReadBigInts(true)
    statement.setReturnArrays(true)
    this.#statements.set(text, statement)
    return statement
  }

  #try<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      if (isLocked(error))
        throw new StoreError(`${this.place} is in use: stop the broker, and let other commands end first`)
      throw new StoreError(`${this.place}: ${(error as Error).message}`)
    }
  }
}

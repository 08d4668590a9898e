/** One of the two stores of a copy, whose process is alone with it, or sees it as of one moment. */
import { StoreError } from '../engine/errors.ts'
import { type Table, VERSIONS } from './tables.ts'
import type { Row, Value } from './values.ts'

export interface Side {
  /** In words, without secrets. */
  readonly place: string
  /** Whether it can store U+0000 in texts. */
  readonly hasZeros: boolean
  /** Returns the tables with the names of their columns. */
  tables(): Promise<Map<string, readonly string[]>>
  /** Brings the schema up to date, or makes it. */
  migrate(now: number): Promise<void>
  /** Runs a statement with `?` for values. Returns the rows. */
  run(text: string, values?: readonly Value[]): Promise<Row[]>
  insert(table: Table, rows: readonly Row[]): Promise<void>
  /** Removes all rows of all these tables. */
  clear(tables: readonly Table[]): Promise<void>
  /** Returns the highest key that a counted table has ever had, or 0. */
  counter(table: Table): Promise<bigint>
  setCounter(table: Table, value: bigint): Promise<void>
  /** Begins a transaction in which no other process writes. */
  begin(tables: readonly Table[]): Promise<void>
  commit(): Promise<void>
  /**
   * Keeps other processes from reading the settings, within the transaction: a new connection waits there.
   * @throws StoreError if another process has the store open, and could wait to write to it
   */
  requireStillAlone(): Promise<void>
}

/** Returns at most `limit` rows after that key, in the order of keys. */
export async function rowsAfter(
  side: Side,
  table: Table,
  after: readonly Value[] | undefined,
  limit: number,
): Promise<Row[]> {
  const key = table.key.map(quoted).join(', ')
  const conditions = [
    ...(after ? [`(${key}) > (${after.map(() => '?').join(', ')})`] : []),
    ...(table.only === undefined ? [] : [table.only]),
  ]
  const where = conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''
  const names = table.columns.map(({ name }) => quoted(name)).join(', ')
  const text = `select ${names} from ${quoted(table.name)} ${where} order by ${key} limit ?`
  return await side.run(text, [...(after ?? []), BigInt(limit)])
}

/** @throws StoreError if the store has other tables or columns than this program's */
export async function requireTables(side: Side, tables: readonly Table[]): Promise<void> {
  const found = await side.tables()
  found.delete(VERSIONS)
  const flat = (name: string, columns: readonly string[]) => columns.map((column) => `${name}.${column}`)
  const there = new Set([...found].flatMap(([name, columns]) => flat(name, columns)))
  const expected = new Set(
    tables.flatMap(({ name, columns }) =>
      flat(
        name,
        columns.map((column) => column.name),
      ),
    ),
  )
  const [odd] = [...there].filter((name) => !expected.has(name)).sort()
  const [missing] = [...expected].filter((name) => !there.has(name)).sort()
  if (odd === undefined && missing === undefined) return
  const what = odd === undefined ? `has no ${missing}` : `has ${odd}, which is not sallyport's`
  throw new StoreError(`${side.place} ${what}: a copy would not be whole`)
}

export const quoted = (name: string): string => `"${name}"`

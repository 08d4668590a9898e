/**
 * Queries about one row, or those with certain values. Their texts depend on table and columns alone, and are compiled
 * once (kept-query.ts).
 */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import type { Db, Schema } from '../migrations/schema.ts'
import { keptQuery } from './kept-query.ts'

type Table = keyof Schema & string
type Run = (db: Db, ...values: unknown[]) => Promise<unknown[]>

/** Limit of texts: updates have those of all sets of columns that were asked for. */
const MAX_KEPT = 500
const kept = new Map<string, Run>()

function runOf(key: string, make: () => Run): Run {
  const known = kept.get(key)
  if (known) return known
  if (kept.size >= MAX_KEPT) kept.clear()
  const made = make()
  kept.set(key, made)
  return made
}

/** Inserts the row; columns that it does not name get their defaults. */
export async function insertRow<T extends Table>(db: Db, table: T, row: Partial<Schema[T]>): Promise<void> {
  const columns = Object.keys(row)
  const into: Table = table
  const run = runOf(`insert ${table} ${columns.join(' ')}`, () =>
    keptQuery((on: Db, ...values: unknown[]) => on.insertInto(into).values(rowOf(columns, values))),
  )
  await run(db, ...Object.values(row))
}

/** Sets columns, one at least, of the row with the id. Returns whether there is one. */
export async function updateRow<T extends Table>(
  db: Db,
  table: T,
  id: string,
  change: Readonly<Record<string, unknown>>,
): Promise<boolean> {
  const columns = Object.keys(change)
  const of: Table = table
  const run = runOf(`update ${table} ${columns.join(' ')}`, () =>
    keptQuery((on: Db, own: unknown, ...values: unknown[]) =>
      on.updateTable(of).set(rowOf(columns, values)).where(isId(own)).returning(sql<number>`1`.as('one')),
    ),
  )
  return (await run(db, id, ...Object.values(change))).length > 0
}

/** Returns the rows that have all these values. */
export async function rowsBy<T extends Table>(
  db: Db,
  table: T,
  values: Partial<Schema[T]>,
): Promise<unknown[]> {
  const columns = Object.keys(values)
  const of: Table = table
  const run = runOf(`rows ${table} ${columns.join(' ')}`, () =>
    keptQuery((on: Db, ...given: unknown[]) => {
      const has = columns.map((column, at) => sql`${sql.ref(column)} = ${given[at]}`)
      return on
        .selectFrom(of)
        .selectAll()
        .where(sql<SqlBool>`${sql.join(has, sql` and `)}`)
    }),
  )
  return await run(db, ...Object.values(values))
}

const rowOf = (columns: readonly string[], values: readonly unknown[]) =>
  Object.fromEntries(columns.map((column, at) => [column, values[at]]))

const isId = (id: unknown): RawBuilder<SqlBool> => sql<SqlBool>`id = ${id}`

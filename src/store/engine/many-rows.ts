/**
 * Inserts many rows, or none of them. SQLite is quickest with one after the other: each is a call of a function. A
 * server gets all in one statement, whose text does not depend on their number.
 */
import { type Expression, sql } from 'kysely'
import type { Db } from '../migrations/schema.ts'
import { inOneStatement, inTransaction, isOnServer } from './commits.ts'

/** A list of values for each column, which are lists of equal lengths. */
type Columns<V extends readonly unknown[]> = { [K in keyof V]: V[K][] }

/** Returns a function that inserts rows, by `one` on SQLite and by `all` on a server. */
export function rowsInsert<V extends readonly unknown[]>(
  one: (db: Db, ...row: V) => Promise<unknown>,
  all: (db: Db, ...columns: Columns<V>) => Promise<unknown>,
): (db: Db, rows: readonly V[]) => Promise<void> {
  return async (db, rows) => {
    const [first] = rows
    if (!first) return
    if (isOnServer(db)) {
      const columns = first.map((_, column) => rows.map((row) => row[column])) as Columns<V>
      await inOneStatement(db, (on) => all(on, ...columns))
      return
    }
    await inTransaction(db, async (tx) => {
      for (const row of rows) await one(tx, ...row)
    })
  }
}

/** The rows of a server's lists, by the types of their columns. */
export function unnested(columns: readonly (readonly [list: unknown, type: string])[]): Expression<never> {
  const lists = columns.map(([list, type]) => sql`cast(${list} as ${sql.raw(type)}[])`)
  return sql<never>`select * from unnest(${sql.join(lists)})`
}

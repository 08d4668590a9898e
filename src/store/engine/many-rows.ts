/**
 * Writes many rows, or none of them. SQLite is quickest with one after the other: each is a call of a function. A
 * server gets all in one statement, whose text does not depend on their number.
 */
import { type Expression, sql } from 'kysely'
import type { Db, Schema } from '../migrations/schema.ts'
import { inOneStatement, inTransaction, isOnServer } from './commits.ts'
import { keptQuery } from './kept-query.ts'
import { updateRow } from './kept-rows.ts'

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

type Values = Readonly<Record<string, string | number | null>>

/**
 * Returns a function that sets columns of rows, each given by its id, which none shares, and by values of some of
 * `types`: the columns that may be set, and PostgreSQL's types of them. Call it in a transaction. It returns the ids of the
 * rows that are there.
 */
export function rowsUpdate<T extends keyof Schema & string>(
  table: T,
  types: Readonly<Record<string, 'bigint' | 'text'>>,
): (tx: Db, rows: readonly (readonly [id: string, values: Values])[]) => Promise<Set<string>> {
  /** By the columns that they set. */
  const kept = new Map<string, (db: Db, ...lists: unknown[][]) => Promise<{ id: string }[]>>()
  const ofColumns = (columns: readonly string[]) => {
    const key = columns.join(' ')
    const known = kept.get(key)
    if (known) return known
    const set = columns.map((column) => sql`${sql.ref(column)} = given.${sql.ref(column)}`)
    const made = keptQuery((db: Db, ...lists: unknown[][]) => {
      const given = ['id', ...columns].map((column, at) => [lists[at], types[column] ?? 'text'] as const)
      const query = sql<{ id: string }>`update ${sql.table(table)} set ${sql.join(set)}
        from (${unnested(given)}) as given (${sql.join(['id', ...columns].map((column) => sql.ref(column)))})
        where ${sql.table(table)}.id = given.id returning given.id`
      return { compile: () => query.compile(db) }
    })
    kept.set(key, made)
    return made
  }
  return async (tx, rows) => {
    const there = new Set<string>()
    if (!isOnServer(tx)) {
      for (const [id, values] of rows) if (await updateRow(tx, table, id, values)) there.add(id)
      return there
    }
    const alike = Map.groupBy(rows, ([, values]) => Object.keys(values).join(' '))
    for (const some of alike.values()) {
      const columns = Object.keys(some[0]![1])
      const lists = columns.map((column) => some.map(([, values]) => values[column]))
      const found = await ofColumns(columns)(
        tx,
        some.map(([id]) => id),
        ...lists,
      )
      for (const { id } of found) there.add(id)
    }
    return there
  }
}

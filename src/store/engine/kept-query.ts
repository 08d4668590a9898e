/**
 * Queries that are built and compiled once. Kysely does both at each call, which takes longer than SQLite
 * needs for the few rows of a sign-in or a review. Their text depends on no value, and they have a name, by which a
 * server keeps their plan.
 */
import { type Compilable, CompiledQuery } from 'kysely'
import type { Db } from '../migrations/schema.ts'

/** Stands for a value while the query is built. */
class Place {
  readonly index: number

  constructor(index: number) {
    this.index = index
  }
}

export interface KeptQuery<R = unknown> extends CompiledQuery<R> {
  /** One for each text. */
  readonly name: string
}

let names = 0

/**
 * Returns a function that runs the query with the values of each call. `build` is called once for each engine,
 * with placeholders: it binds them, and looks at none.
 */
export function keptQuery<V extends readonly unknown[], R>(
  build: (db: Db, ...values: V) => Compilable<R>,
): (db: Db, ...values: V) => Promise<R[]> {
  const kept = new Map<unknown, KeptQuery<R>>()
  let count: number | undefined
  return async (db, ...values) => {
    count ??= values.length
    // A value that the first call left out has no place in the query.
    if (values.length !== count) throw new Error(`expected ${count} values, got ${values.length}`)
    const engine = db.getExecutor().adapter.constructor
    let known = kept.get(engine)
    if (!known) {
      const places = values.map((_, index) => new Place(index)) as unknown as V
      known = { ...build(db, ...places).compile(), name: `kept_${++names}` }
      kept.set(engine, known)
    }
    const parameters = known.parameters.map((one) => (one instanceof Place ? values[one.index] : one))
    return (await db.executeQuery<R>({ ...known, parameters })).rows
  }
}

/** Returns the name of a kept query, or undefined for another. */
export function nameOf(query: CompiledQuery): string | undefined {
  return 'name' in query ? (query as KeptQuery).name : undefined
}

/** Returns a function that runs the statement, which has no values and returns no rows. */
export function keptStatement(text: string): (db: Db) => Promise<unknown> {
  const query = CompiledQuery.raw(text)
  return (db) => db.executeQuery(query)
}

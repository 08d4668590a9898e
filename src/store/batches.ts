/** Queries about many objects: some at a time, by texts that do not depend on their number. */
import { type AliasedRawBuilder, type Compilable, sql } from 'kysely'
import { keptQuery } from './engine/kept-query.ts'
import type { Db } from './migrations/schema.ts'

/** Objects that one query asks for: so many hold the event loop for a few milliseconds. */
export const BATCH = 64

/** The ids that are asked for: a relation with one row for each object. */
export type Asked = AliasedRawBuilder<
  // The columns of `values` have these names in SQLite and in PostgreSQL.
  { column1: string; column2: string; column3: string },
  'asked'
>

/**
 * Returns a function that asks for any number of objects, each given by `width` ids. `build` binds the ids, and
 * looks at none.
 */
export function batchQuery<R>(
  width: 1 | 2 | 3,
  build: (db: Db, asked: Asked) => Compilable<R>,
): (db: Db, objects: readonly (readonly string[])[]) => Promise<R[]> {
  const sized = (size: number) => ({
    size,
    query: keptQuery((db: Db, ...ids: string[]) => build(db, relation(ids, width))),
  })
  const [one, most] = [sized(1), sized(BATCH)]
  return async (db, objects) => {
    const rows: R[] = []
    for (let begin = 0; begin < objects.length; begin += BATCH) {
      const some = objects.slice(begin, begin + BATCH)
      const { size, query } = some.length === 1 ? one : most
      // No id is empty: places that nobody asks for find nothing.
      const ids = Array.from({ length: size }, (_, at) => some[at] ?? Array<string>(width).fill('')).flat()
      rows.push(...(await query(db, ...ids)))
    }
    return rows
  }
}

function relation(ids: readonly string[], width: number): Asked {
  const rows = Array.from({ length: ids.length / width }, (_, row) => {
    const own = ids.slice(row * width, (row + 1) * width)
    return sql`(${sql.join(own)})`
  })
  return sql<never>`(values ${sql.join(rows)})`.as('asked')
}

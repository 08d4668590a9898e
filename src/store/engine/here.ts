/** Texts that only an engine in this process needs, since it runs on the event loop. */
import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { either, type Sql } from './either.ts'

/**
 * A condition that stops a statement at too many rows (patterns.ts). SQLite evaluates it before what needs the
 * row. PostgreSQL reads elsewhere.
 */
export const READ_HERE: RawBuilder<SqlBool> = either({ sqlite: sql`read_here()`, postgres: sql`true` })

/**
 * A column that SQLite's planner may not find an index for; PostgreSQL's has statistics to decide by.
 */
export function withoutIndex(column: Sql): Sql {
  return either({ sqlite: sql`+${column}`, postgres: column })
}

/**
 * Aggregates the number of all rows that a table has ever had, if none is removed. SQLite's highest rowid is that:
 * `count(*)` would read an index of all of them, here.
 */
export function rowsEver(): RawBuilder<number> {
  return either({ sqlite: sql`coalesce(max(rowid), 0)`, postgres: sql`count(*)` })
}

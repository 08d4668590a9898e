/**
 * Searches that no index serves, in a large collection: a million sessions are read in half a second, and all
 * sessions that run would stand still meanwhile. They are read in the thread of long lists.
 */
import { type SelectQueryBuilder, sql } from 'kysely'

/** Number of objects from which on a collection is large: so many are searched in a few milliseconds. */
const LARGE = 20_000
/** Rows of one piece. */
const PIECE = 500

/** Whether the query reads a table, or an index of it, from one end to the other. */
export async function isScan<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
): Promise<boolean> {
  const steps = await query.explain<{ detail: string }>(undefined, sql`query plan`)
  return steps.some(({ detail }) => detail.startsWith('SCAN ') && !detail.includes('VIRTUAL TABLE'))
}

/** Whether a collection of so many objects is large. */
export const isLarge = (count: number): boolean => LARGE <= count

/**
 * Returns all rows of the query, read in the thread.
 * @throws StoreBusyError
 */
export async function readAside<DB, TB extends keyof DB, O>(
  query: SelectQueryBuilder<DB, TB, O>,
): Promise<O[]> {
  const rows: O[] = []
  for await (const row of query.stream(PIECE)) rows.push(row)
  return rows
}

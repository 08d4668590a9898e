/**
 * Lists that read many rows: of a million sessions the search takes half a second, and so does a page far behind
 * or an order without an index, and all sessions that run would stand still meanwhile. What a plan will read is
 * not known before, since an index may serve a word that most rows have. So each is begun here, up to a number of
 * rows, and what is longer is read in the thread of long lists.
 */
import type { SelectQueryBuilder } from 'kysely'
import { LongStatementError } from './engine/patterns.ts'

/** Rows of one piece. */
const PIECE = 500

/** Reads the queries of one list. */
export class ListReading {
  /** Set once a query was too long: the next one is as well. */
  #isLong = false

  /**
   * Returns the rows of the query that `make` returns, with the condition READ_HERE if `isHere`.
   * @throws StoreBusyError
   */
  async rows<DB, TB extends keyof DB, O>(
    make: (isHere: boolean) => SelectQueryBuilder<DB, TB, O>,
  ): Promise<O[]> {
    try {
      if (!this.#isLong) return await make(true).execute()
    } catch (error) {
      if (!(error instanceof LongStatementError)) throw error
      this.#isLong = true
    }
    const rows: O[] = []
    for await (const row of make(false).stream(PIECE)) rows.push(row)
    return rows
  }
}

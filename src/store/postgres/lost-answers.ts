/**
 * What became of a commit whose answer was lost with the connection: the server may have done it, and may have
 * not. It remembers the outcome of each transaction by its number (PostgreSQL 15, 9.27.10).
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { StoreUnavailableError } from '../engine/errors.ts'
import type { Pool } from './pool.ts'

/** Time in which the answer is of use. */
const WAIT_MS = 5000
const PAUSE_MS = 200
/**
 * Commits, too: a transaction whose connection was lost while it waited for the synchronous standby stands here, and
 * not there. A later commit has its answer when the standby has both.
 */
const QUESTION = `select substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) as timeline,
  pg_xact_status($1::xid8) as status, pg_logical_emit_message(true, 'sallyport', '')`

export interface Commit {
  /** Number of the transaction. */
  xid: string
  /** Timeline of the server that gave it: after a failover the numbers are given again. */
  timeline: string
}

/** Returns whether the commit was done. @throws StoreUnavailableError if no server can tell */
export async function isDone(pool: Pool, { xid, timeline }: Commit): Promise<boolean> {
  const end = performance.now() + WAIT_MS
  do {
    const status = await pool
      .query<{ timeline: string; status: string | null }>(QUESTION, [xid])
      .catch(() => undefined)
    if (status) {
      const [row] = status
      if (row?.timeline !== timeline) break
      // Without a status it is too old to be remembered, which one of this moment is not.
      if (row.status === 'committed') return true
      if (row.status === 'aborted') return false
    }
    await sleep(PAUSE_MS)
  } while (performance.now() < end)
  throw new StoreUnavailableError(
    'its answer was lost, and it is not known whether it has stored the last change',
  )
}

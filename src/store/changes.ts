/** The log of changes of rights: the triggers of migration 21 write it in the transaction of the change. */
import { sql } from 'kysely'
import { alone, isOnServer, type Tx } from './engine/commits.ts'
import { keptQuery, keptStatement } from './engine/kept-query.ts'
import { LOCK } from './migrations/0021-changes.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import type { ChangeKind, ChangeRepository } from './store.ts'

const KINDS: readonly ChangeKind[] = [
  'user',
  'user_group',
  'target_group',
  'device',
  'service',
  'domain',
  'account',
  'api_key',
  'approval',
  'everyone',
]

export function changeRepository({ db }: StoreContext): ChangeRepository {
  return {
    async after(revision, limit) {
      const rows = await rowsAfter(db, revision, limit)
      // A newer program's triggers, while its predecessor's sessions run on, may note kinds that are not known here.
      return rows.map(({ kind, ...row }) => ({
        ...row,
        kind: KINDS.find((one) => one === kind) ?? 'everyone',
      }))
    },

    async kept() {
      const [row] = await bounds(db)
      return { first: row?.first ?? 0, last: row?.last ?? 0 }
    },

    async removeOldest(keep, limit) {
      const [row] = await bounds(db)
      const first = row?.first ?? 0
      const end = Math.min((row?.last ?? 0) - keep + 1, first + limit)
      if (end <= first) return 0
      const { numDeletedRows } = await db
        .deleteFrom('changes')
        .where('revision', '<', end)
        .executeTakeFirstOrThrow()
      return Number(numDeletedRows)
    },
  }
}

const rowsAfter = keptQuery((db: Db, revision: number, limit: number) =>
  db
    .selectFrom('changes')
    .select(['revision', 'kind', 'object'])
    .where('revision', '>', revision)
    .orderBy('revision')
    .limit(limit),
)

/** Each of the two reads one entry of the index; together in one list of columns they would read all. */
const bounds = keptQuery((db: Db) =>
  db.selectNoFrom([
    sql<number | null>`(select min(revision) from changes)`.as('first'),
    sql<number | null>`(select max(revision) from changes)`.as('last'),
  ]),
)

/** Waits for changes that are not committed, and keeps others waiting; work of the same kind goes on beside it. */
const shareRights = keptStatement(`select pg_advisory_xact_lock_shared(${LOCK})`)

/**
 * Runs the work in one transaction between two changes of rights. Each of its statements reads what was committed before
 * it: what one transaction has as its moment would be older than the lock. A file has one writer at a time anyway.
 */
export function amongRights<T>(db: Db, work: (tx: Tx) => Promise<T>): Promise<T> {
  if (!isOnServer(db)) return alone(db, work)
  const locked = async (tx: Tx) => {
    await shareRights(tx)
    return await work(tx)
  }
  return alone(db, locked, false, 'read committed')
}

/** Failures of sign-ins and attempts in progress, of all processes. */
import { Buffer } from 'node:buffer'
import { sql } from 'kysely'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, LockoutRow, StoreContext } from './migrations/schema.ts'
import type { Failures, FailuresOf, LockoutKeys, LockoutLimits, LockoutRepository } from './store.ts'

/** Each sign-in runs it. */
const failuresOf = keptQuery((db: Db, pair: Uint8Array, address: Uint8Array, now: number) =>
  db.selectFrom('lockouts').selectAll().where('key', 'in', [pair, address]).where('expires', '>', now),
)

const lockedRows = keptQuery((db: Db, now: number) =>
  db.selectFrom('lockouts').select('name').where('name', 'is not', null).where('locked_until', '>', now),
)

export function lockoutRepository({ db, newId }: StoreContext): LockoutRepository {
  return {
    find: (keys, now) => find(db, keys, now),

    reserve: (keys, now, expires, { pairFailures, addressFailures }) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('lockout_attempts').where('expires', '<=', now).execute()
        const { pair, address } = await find(tx, keys, now)
        const inProgress = async (kind: 'pair' | 'address') => {
          const counted = tx.selectFrom('lockout_attempts').select(sql<number>`count(*)`.as('total'))
          return (await counted.where(kind, '=', keys[kind]).executeTakeFirstOrThrow()).total
        }
        if (pairFailures <= (pair?.failures ?? 0) + (await inProgress('pair'))) return undefined
        if (addressFailures <= (address?.failures ?? 0) + (await inProgress('address'))) return undefined
        const id = newId()
        await tx
          .insertInto('lockout_attempts')
          .values({ id, pair: keys.pair, address: keys.address, expires })
          .execute()
        return id
      }),

    fail: (keys, attempt, now, limits) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('lockouts').where('expires', '<=', now).execute()
        const pair = await count(tx, keys.pair, now, limits.pairFailures, limits, keys.name)
        const address = await count(tx, keys.address, now, limits.addressFailures, limits)
        await bound(tx, 2 * limits.maxEntries)
        await endAttempt(tx, attempt)
        return { pair, address }
      }),

    async lockedNames(now) {
      const rows = await lockedRows(db, now)
      return rows.flatMap(({ name }) => (name ? [name] : []))
    },

    async forgive(name) {
      await db.deleteFrom('lockouts').where('name', '=', name).execute()
    },

    end: (attempt, forgiven) =>
      inTransaction(db, async (tx) => {
        if (forgiven) await tx.deleteFrom('lockouts').where('key', '=', forgiven).execute()
        await endAttempt(tx, attempt)
      }),
  }
}

async function find(db: Db, { pair, address }: LockoutKeys, now: number): Promise<FailuresOf> {
  const rows = await failuresOf(db, pair, address, now)
  const of = (key: Uint8Array) => rows.find((row) => Buffer.from(row.key).equals(key))
  const [ofPair, ofAddress] = [of(pair), of(address)]
  return { ...(ofPair && { pair: toFailures(ofPair) }), ...(ofAddress && { address: toFailures(ofAddress) }) }
}

/** Counts a failure of the key, whose expired row is gone. The one that reaches the limit locks it. */
async function count(
  tx: Tx,
  key: Uint8Array,
  now: number,
  limit: number,
  { windowMs, lockMs }: LockoutLimits,
  name?: Uint8Array,
): Promise<Failures> {
  const locks = limit <= 1
  const row = await tx
    .insertInto('lockouts')
    .values({
      key,
      failures: 1,
      since: now,
      locked_until: locks ? now + lockMs : 0,
      expires: now + (locks ? lockMs : windowMs),
      name: name ?? null,
    })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet({
        failures: sql`lockouts.failures + 1`,
        locked_until: sql`case when lockouts.failures + 1 = ${limit} then ${now + lockMs} else lockouts.locked_until end`,
        expires: sql`case when lockouts.failures + 1 = ${limit} then ${now + lockMs} else lockouts.expires end`,
      }),
    )
    .returningAll()
    .executeTakeFirstOrThrow()
  return toFailures(row)
}

/** Removes the rows that would end first beyond `limit`. */
async function bound(tx: Tx, limit: number): Promise<void> {
  const counted = tx.selectFrom('lockouts').select(sql<number>`count(*)`.as('total'))
  const { total } = await counted.executeTakeFirstOrThrow()
  if (total <= limit) return
  const first = tx
    .selectFrom('lockouts')
    .select('key')
    .orderBy('expires')
    .limit(total - limit)
  await tx.deleteFrom('lockouts').where('key', 'in', first).execute()
}

async function endAttempt(tx: Tx, attempt: string | undefined): Promise<void> {
  if (attempt !== undefined) await tx.deleteFrom('lockout_attempts').where('id', '=', attempt).execute()
}

function toFailures({ failures, since, locked_until }: LockoutRow): Failures {
  return { failures, since, lockedUntil: locked_until }
}

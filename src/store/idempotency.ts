/** Responses to requests with an Idempotency-Key: a limited number, for a limited time; and claims of keys. */

import type { StoreContext } from './migrations/schema.ts'
import { EVERYTHING, write } from './query.ts'
import type { IdempotencyRepository } from './store.ts'

export function idempotencyRepository({ db }: StoreContext): IdempotencyRepository {
  return {
    async find(key, since) {
      const row = await db
        .selectFrom('idempotency_keys')
        .selectAll()
        .where('key', '=', key)
        .where('time', '>', since)
        .executeTakeFirst()
      if (!row) return undefined
      const { request, time, status, location, answer } = row
      return { request, time, status, ...(location !== null && { location }), answer }
    },

    async claim(key, claim, now, expires) {
      const made = await db
        .insertInto('idempotency_claims')
        .values({ key, claim, expires })
        .onConflict((conflict) =>
          conflict
            .column('key')
            .doUpdateSet({ claim, expires })
            .where('idempotency_claims.expires', '<=', now),
        )
        .returning('claim')
        .executeTakeFirst()
      return made !== undefined
    },

    async release(key, claim) {
      await db.deleteFrom('idempotency_claims').where('key', '=', key).where('claim', '=', claim).execute()
    },

    async releaseAll() {
      await db.deleteFrom('idempotency_claims').execute()
    },

    keep: (key, claim, { request, time, status, location, answer }, since, limit) =>
      write(db, { type: 'idempotency key', name: '' }, async (tx) => {
        await tx.deleteFrom('idempotency_keys').where('time', '<=', since).execute()
        const oldest = tx
          .selectFrom('idempotency_keys')
          .select('key')
          .orderBy('time', 'desc')
          .limit(EVERYTHING)
          .offset(limit - 1)
        await tx.deleteFrom('idempotency_keys').where('key', 'in', oldest).execute()
        const kept = { request, time, status, location: location ?? null, answer }
        await tx
          .insertInto('idempotency_keys')
          .values({ key, ...kept })
          .onConflict((conflict) => conflict.column('key').doUpdateSet(kept))
          .execute()
        await tx
          .deleteFrom('idempotency_claims')
          .where((eb) => eb.or([eb('claim', '=', claim), eb('expires', '<=', time)]))
          .execute()
      }),
  }
}

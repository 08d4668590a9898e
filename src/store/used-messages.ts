/** Messages that count once: a limited number, until they end. */
import { sql } from 'kysely'
import { inTransaction } from './engine/commits.ts'
import type { StoreContext } from './migrations/schema.ts'
import type { UsedMessageRepository } from './store.ts'

export function usedMessageRepository({ db }: StoreContext): UsedMessageRepository {
  return {
    use: (digests, ends, now, limit) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('used_messages').where('end_time', '<=', now).execute()
        const { total } = await tx
          .selectFrom('used_messages')
          .select(sql<number>`count(*)`.as('total'))
          .executeTakeFirstOrThrow()
        if (limit < Number(total) + digests.length) return 'full'
        const rows = digests.map((digest) => ({ digest, end_time: ends }))
        const { numInsertedOrUpdatedRows } = await tx
          .insertInto('used_messages')
          .values(rows)
          .onConflict((conflict) => conflict.column('digest').doNothing())
          .executeTakeFirstOrThrow()
        return Number(numInsertedOrUpdatedRows) === digests.length ? 'first' : 'used'
      }),
  }
}

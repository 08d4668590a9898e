/** Invitations that wait for their guests: a limited number, for a limited time, each used up by one. */
import { sql } from 'kysely'
import { inTransaction } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import type { InvitationRepository } from './store.ts'

/** Each sign-in by a ticket of VNC runs it. */
const waitingFor = keptQuery((db: Db, address: string, now: number) =>
  db
    .selectFrom('invitations')
    .selectAll()
    .where('address', 'in', ['', address])
    .where('expires', '>', now)
    .orderBy('id'),
)

export function invitationRepository({ db }: StoreContext): InvitationRepository {
  return {
    add: (invitation, now, limit) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('invitations').where('expires', '<=', now).execute()
        const counted = tx.selectFrom('invitations').select(sql<number>`count(*)`.as('total'))
        if ((await counted.executeTakeFirstOrThrow()).total >= limit) return false
        await tx.insertInto('invitations').values(invitation).execute()
        return true
      }),

    waitingFor: (address, now) => waitingFor(db, address, now),

    async take(id, now) {
      const { numDeletedRows } = await db
        .deleteFrom('invitations')
        .where('id', '=', id)
        .where('expires', '>', now)
        .executeTakeFirst()
      return numDeletedRows === 1n
    },

    async removeAll() {
      await db.deleteFrom('invitations').execute()
    },
  }
}

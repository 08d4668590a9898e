/** One-time tickets: a limited number, for a limited time. */
import { sql } from 'kysely'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext, TicketRow } from './migrations/schema.ts'
import type { StoredTicket, TicketRepository } from './store.ts'

/** Each sign-in by VNC or RDP runs it. */
const waitingFor = keptQuery((db: Db, protocol: string, address: string, now: number) =>
  db
    .selectFrom('tickets')
    .selectAll()
    .where('protocol', '=', protocol)
    .where('address', '=', address)
    .where('expires', '>', now)
    .orderBy('id'),
)

export function ticketRepository({ db }: StoreContext): TicketRepository {
  return {
    add: ({ userId, ...ticket }, now, limits) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('tickets').where('expires', '<=', now).execute()
        if ((await count(tx)) >= limits.all || (await count(tx, userId)) >= limits.ofUser) return false
        await tx
          .insertInto('tickets')
          .values({ ...ticket, user_id: userId })
          .execute()
        return true
      }),

    async waitingFor(protocol, address, now) {
      return (await waitingFor(db, protocol, address, now)).map(ticketOf)
    },

    async waiting(now) {
      const rows = await db
        .selectFrom('tickets')
        .selectAll()
        .where('expires', '>', now)
        .orderBy('id')
        .execute()
      return rows.map(ticketOf)
    },

    async take(id, now) {
      const row = await db
        .deleteFrom('tickets')
        .where('id', '=', id)
        .where('expires', '>', now)
        .returningAll()
        .executeTakeFirst()
      return row && ticketOf(row)
    },

    async removeAll() {
      await db.deleteFrom('tickets').execute()
    },
  }
}

async function count(tx: Tx, userId?: string): Promise<number> {
  let query = tx.selectFrom('tickets').select(sql<number>`count(*)`.as('total'))
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  return (await query.executeTakeFirstOrThrow()).total
}

function ticketOf({ user_id, ...row }: TicketRow): StoredTicket {
  return { ...row, userId: user_id }
}

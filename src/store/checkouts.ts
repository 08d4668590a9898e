import type { Checkout, Id } from '../model/objects.ts'
import { DuplicateError, MissingReferenceError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { CheckoutRow, Db, StoreContext } from './migrations/schema.ts'
import { requireIds, write } from './query.ts'
import type { CheckoutRepository } from './store.ts'

const TYPE = 'checkout'

export function checkoutRepository({ db, newId }: StoreContext): CheckoutRepository {
  const active = async (from: Db, accountId: Id, now: number): Promise<Checkout[]> =>
    (await activeOf(from, accountId, now)).map(checkout)
  return {
    async find(id) {
      const row = await db.selectFrom('checkouts').selectAll().where('id', '=', id).executeTakeFirst()
      return row && checkout(row)
    },

    active: (accountId, now) => active(db, accountId, now),

    async ofUser(userId, now) {
      const rows = await notReturned(db).where('user_id', '=', userId).where('expires', '>', now).execute()
      return rows.map(checkout)
    },

    async expired(now, limit) {
      const rows = await notReturned(db).where('expires', '<=', now).limit(limit).execute()
      return rows.map(checkout)
    },

    create: (object, exclusive) =>
      write(db, { type: TYPE, name: object.accountId }, async (tx) => {
        await requireIds(tx, 'accounts', [object.accountId], TYPE, 'account')
        await requireIds(tx, 'users', [object.userId], TYPE, 'user')
        if (exclusive && (await active(tx, object.accountId, object.begin)).length > 0) {
          throw new DuplicateError(TYPE, object.accountId)
        }
        const id = newId()
        await tx
          .insertInto('checkouts')
          .values({
            id,
            account_id: object.accountId,
            user_id: object.userId,
            begin_time: object.begin,
            expires: object.expires,
            end_time: object.end ?? null,
            api_key: object.apiKey ?? '',
          })
          .execute()
        return { ...object, id }
      }),

    end: (id, time) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const { numUpdatedRows } = await tx
          .updateTable('checkouts')
          .set({ end_time: time })
          .where('id', '=', id)
          .where('end_time', 'is', null)
          .executeTakeFirst()
        if (numUpdatedRows === 0n) throw new MissingReferenceError(TYPE, 'id', id)
      }),
  }
}

const notReturned = (db: Db) =>
  db.selectFrom('checkouts').selectAll().where('end_time', 'is', null).orderBy('begin_time')

const activeOf = keptQuery((db: Db, accountId: Id, now: number) =>
  notReturned(db).where('account_id', '=', accountId).where('expires', '>', now),
)

function checkout(row: CheckoutRow): Checkout {
  return {
    id: row.id,
    accountId: row.account_id,
    userId: row.user_id,
    begin: row.begin_time,
    expires: row.expires,
    ...(row.end_time !== null && { end: row.end_time }),
    ...(row.api_key !== '' && { apiKey: row.api_key }),
  }
}

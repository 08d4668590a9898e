/** Passwords that servers have accepted a short while ago, as sealed hashes: of each user and server the last one. */
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import type { OfflineProofRepository } from './store.ts'

const proofsOf = keptQuery((db: Db, userId: Id) =>
  db.selectFrom('offline_proofs').selectAll().where('user_id', '=', userId).orderBy('time', 'desc'),
)

export function offlineProofRepository({ db }: StoreContext): OfflineProofRepository {
  return {
    async ofUser(userId) {
      const rows = await proofsOf(db, userId)
      return rows.map((row) => ({
        userId: row.user_id,
        externalAuthId: row.external_auth_id,
        sealed: row.sealed,
        time: row.time,
        secretRevision: row.secret_revision,
      }))
    },

    async set({ userId: user_id, externalAuthId: external_auth_id, sealed, time, secretRevision }) {
      const fresh = { sealed, time, secret_revision: secretRevision, tries: 0 }
      await db
        .insertInto('offline_proofs')
        .values({ user_id, external_auth_id, ...fresh })
        .onConflict((conflict) => conflict.columns(['user_id', 'external_auth_id']).doUpdateSet(fresh))
        .execute()
    },

    async countTry({ userId, externalAuthId }, most) {
      const { numUpdatedRows } = await db
        .updateTable('offline_proofs')
        .set((e) => ({ tries: e('tries', '+', 1) }))
        .where('user_id', '=', userId)
        .where('external_auth_id', '=', externalAuthId)
        .where('tries', '<', most)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },

    async forgive({ userId, externalAuthId }) {
      await db
        .updateTable('offline_proofs')
        .set({ tries: 0 })
        .where('user_id', '=', userId)
        .where('external_auth_id', '=', externalAuthId)
        .execute()
    },

    async forget(externalAuthId, userName) {
      const named = db.selectFrom('users').select('id').where('name_key', '=', nameKey(userName))
      await db
        .deleteFrom('offline_proofs')
        .where('external_auth_id', '=', externalAuthId)
        .where('user_id', 'in', named)
        .execute()
    },

    async removeAll() {
      await db.deleteFrom('offline_proofs').execute()
    },
  }
}

/** Security keys of users: second factors in browsers. */
import type { Id } from '../model/objects.ts'
import { inTransaction } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { Db, SecurityKeyRow, StoreContext } from './migrations/schema.ts'
import type { SecurityKey, SecurityKeyRepository } from './store.ts'

/** Each sign-in runs it. */
const ofUser = keptQuery((db: Db, userId: Id) =>
  db.selectFrom('security_keys').selectAll().where('user_id', '=', userId).orderBy('id'),
)

export function securityKeyRepository({ db, newId }: StoreContext): SecurityKeyRepository {
  return {
    list: async (userId) => (await ofUser(db, userId)).map(keyOf),

    add: (userId, { name, credentialId, publicKey, signCount, transports, created }, most) =>
      inTransaction(db, async (tx) => {
        const others = await tx
          .selectFrom('security_keys')
          .select(['user_id', 'credential_id'])
          .where((e) => e.or([e('user_id', '=', userId), e('credential_id', '=', credentialId)]))
          .execute()
        if (others.some(({ credential_id }) => Buffer.from(credential_id).equals(credentialId)))
          return 'known'
        if (most <= others.length) return 'too_many'
        await insertRow(tx, 'security_keys', {
          id: newId(),
          user_id: userId,
          key_name: name,
          credential_id: credentialId,
          public_key: publicKey,
          sign_count: signCount,
          transports: transports.join(' '),
          created,
          last_use: null,
        })
        return 'added'
      }),

    async use(id, signCount, time) {
      const { numUpdatedRows } = await db
        .updateTable('security_keys')
        .set({ sign_count: signCount, last_use: time })
        .where('id', '=', id)
        .where('sign_count', signCount === 0 ? '<=' : '<', signCount)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },

    async remove(userId, id) {
      const { numDeletedRows } = await db
        .deleteFrom('security_keys')
        .where('user_id', '=', userId)
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return numDeletedRows > 0n
    },
  }
}

function keyOf(row: SecurityKeyRow): SecurityKey {
  return {
    id: row.id,
    name: row.key_name,
    credentialId: row.credential_id,
    publicKey: row.public_key,
    signCount: row.sign_count,
    transports: row.transports === '' ? [] : row.transports.split(' '),
    created: row.created,
    ...(row.last_use !== null && { lastUse: row.last_use }),
  }
}

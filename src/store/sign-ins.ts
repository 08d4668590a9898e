/** Sign-ins by cookie: a limited number of each user and in all. */
import { sql } from 'kysely'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { Db, SignInRow, StoreContext } from './migrations/schema.ts'
import type { SignInRepository, StoredSignIn } from './store.ts'

/** Each request by cookie runs it. */
const byHash = keptQuery((db: Db, tokenHash: Uint8Array) =>
  db.selectFrom('sign_ins').selectAll().where('token_hash', '=', tokenHash),
)

export function signInRepository({ db, newId }: StoreContext): SignInRepository {
  return {
    begin: (tokenHash, { userId, secretRevision, begin, lastUse }, expired, limits) =>
      inTransaction(db, async (tx) => {
        await removeExpired(tx, expired.begin, expired.lastUse)
        await removeOldest(tx, limits.ofUser, userId)
        await removeOldest(tx, limits.all)
        await insertRow(tx, 'sign_ins', {
          id: newId(),
          token_hash: tokenHash,
          user_id: userId,
          secret_revision: secretRevision,
          begin_time: begin,
          last_use: lastUse,
        })
      }),

    async find(tokenHash) {
      const [row] = await byHash(db, tokenHash)
      return row && signInOf(row)
    },

    async used(tokenHash, time) {
      await db
        .updateTable('sign_ins')
        .set({ last_use: time })
        .where('token_hash', '=', tokenHash)
        .where('last_use', '<', time)
        .execute()
    },

    async end(tokenHash) {
      await db.deleteFrom('sign_ins').where('token_hash', '=', tokenHash).execute()
    },

    async endAll() {
      await db.deleteFrom('sign_ins').execute()
    },
  }
}

const removeExpired = keptQuery((db: Db, begin: number, lastUse: number) =>
  db.deleteFrom('sign_ins').where((e) => e.or([e('begin_time', '<=', begin), e('last_use', '<=', lastUse)])),
)

const count = sql<number>`count(*)`.as('total')
const countAll = keptQuery((db: Db) => db.selectFrom('sign_ins').select(count))
const countOf = keptQuery((db: Db, userId: string) =>
  db.selectFrom('sign_ins').where('user_id', '=', userId).select(count),
)

/** Makes room for one more below the limit, of one user or in all. */
async function removeOldest(tx: Tx, limit: number, userId?: string): Promise<void> {
  const [counted] = userId === undefined ? await countAll(tx) : await countOf(tx, userId)
  const { total } = counted!
  if (total < limit) return
  let own = tx.selectFrom('sign_ins')
  if (userId !== undefined) own = own.where('user_id', '=', userId)
  const oldest = own
    .select('id')
    .orderBy('id')
    .limit(total - limit + 1)
  await tx.deleteFrom('sign_ins').where('id', 'in', oldest).execute()
}

function signInOf({ user_id, secret_revision, begin_time, last_use }: SignInRow): StoredSignIn {
  return { userId: user_id, secretRevision: secret_revision, begin: begin_time, lastUse: last_use }
}

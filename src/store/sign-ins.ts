/** Sign-ins by cookie: a limited number of each user and in all. */
import { sql } from 'kysely'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { Db, SignInRow, StoreContext } from './migrations/schema.ts'
import type { ListedSignIn, SignInRepository, StoredSignIn } from './store.ts'

/** Each request by cookie runs it. */
const byHash = keptQuery((db: Db, tokenHash: Uint8Array) =>
  db.selectFrom('sign_ins').selectAll().where('token_hash', '=', tokenHash),
)

export function signInRepository({ db, newId }: StoreContext): SignInRepository {
  return {
    begin: (
      tokenHash,
      { userId, secretRevision, begin, lastUse, hasFactor, providerSession, client },
      expired,
      limits,
    ) =>
      inTransaction(db, async (tx) => {
        let there = await countsOf(tx, userId, expired)
        if (there.hasExpired) {
          await removeExpired(tx, expired.begin, expired.lastUse)
          there = await countsOf(tx, userId, expired)
        }
        const ofUser = Math.max(0, there.ofUser - limits.ofUser + 1)
        if (ofUser > 0) await removeOldest(tx, ofUser, userId)
        const others = there.total - ofUser - limits.all + 1
        if (others > 0) await removeOldest(tx, others)
        await insertRow(tx, 'sign_ins', {
          id: newId(),
          token_hash: tokenHash,
          user_id: userId,
          secret_revision: secretRevision,
          begin_time: begin,
          last_use: lastUse,
          has_factor: hasFactor ? 1 : 0,
          provider_session_id: providerSession ?? null,
          client_address: client?.address ?? '',
          method: client?.method ?? '',
          agent: client?.agent ?? '',
        })
      }),

    async find(tokenHash) {
      const [row] = await byHash(db, tokenHash)
      return row && signInOf(row)
    },

    async ofUser(userId) {
      const rows = db.selectFrom('sign_ins').selectAll().where('user_id', '=', userId)
      return (await rows.orderBy('id').execute()).map(signInOf)
    },

    async endOfUser(userId, id) {
      let own = db.deleteFrom('sign_ins').where('user_id', '=', userId)
      if (id !== undefined) own = own.where('id', '=', id)
      return Number((await own.executeTakeFirstOrThrow()).numDeletedRows)
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

    endAll: () =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('sign_ins').execute()
        await tx.deleteFrom('provider_sessions').execute()
      }),

    async persons() {
      const rows = db.selectFrom('sign_ins as s').innerJoin('users as u', 'u.id', 's.user_id')
      const persons = rows.select('u.id').distinct().where('u.auth_domain_id', 'is not', null)
      return (await persons.execute()).map(({ id }) => id)
    },
  }
}

const removeExpired = keptQuery((db: Db, begin: number, lastUse: number) =>
  db.deleteFrom('sign_ins').where((e) => e.or([e('begin_time', '<=', begin), e('last_use', '<=', lastUse)])),
)

interface Counts {
  total: number
  ofUser: number
  hasExpired: number
}

/** All that a sign-in has to know, by one statement. */
const counts = keptQuery((db: Db, userId: string, begin: number, lastUse: number) =>
  db.selectNoFrom([
    sql<number>`(select count(*) from sign_ins)`.as('total'),
    sql<number>`(select count(*) from sign_ins where user_id = ${userId})`.as('ofUser'),
    sql<number>`case when exists (select 1 from sign_ins where begin_time <= ${begin})
      or exists (select 1 from sign_ins where last_use <= ${lastUse}) then 1 else 0 end`.as('hasExpired'),
  ]),
)

async function countsOf(
  tx: Tx,
  userId: string,
  { begin, lastUse }: Pick<StoredSignIn, 'begin' | 'lastUse'>,
): Promise<Counts> {
  const [row] = await counts(tx, userId, begin, lastUse)
  return row!
}

/** Removes as many of the oldest, of one user or of all. */
async function removeOldest(tx: Tx, most: number, userId?: string): Promise<void> {
  let own = tx.selectFrom('sign_ins')
  if (userId !== undefined) own = own.where('user_id', '=', userId)
  const oldest = own.select('id').orderBy('id').limit(most)
  await tx.deleteFrom('sign_ins').where('id', 'in', oldest).execute()
}

function signInOf(row: SignInRow): ListedSignIn {
  return {
    id: row.id,
    userId: row.user_id,
    secretRevision: row.secret_revision,
    begin: row.begin_time,
    lastUse: row.last_use,
    ...(row.has_factor !== 0 && { hasFactor: true }),
    ...(row.provider_session_id !== null && { providerSession: row.provider_session_id }),
    client: { address: row.client_address, method: row.method, agent: row.agent },
  }
}

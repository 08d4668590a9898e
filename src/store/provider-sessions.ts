/** Sessions of persons at providers of federated sign-in: a limited number of each user and in all. */
import type { Id } from '../model/objects.ts'
import { inTransaction, type Tx } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow, updateRow } from './engine/kept-rows.ts'
import type { Db, ProviderSessionRow, StoreContext } from './migrations/schema.ts'
import type { ProviderSession, ProviderSessionRepository } from './store.ts'

/** Each request by a cookie that rests on one runs it. */
const byId = keptQuery((db: Db, id: Id) =>
  db.selectFrom('provider_sessions').selectAll().where('id', '=', id),
)

export function providerSessionRepository({ db, newId }: StoreContext): ProviderSessionRepository {
  return {
    begin: (session, seal, limits) =>
      inTransaction(db, async (tx) => {
        await makeRoom(tx, limits.ofUser, session.userId)
        await makeRoom(tx, limits.all)
        const id = newId()
        await insertRow(tx, 'provider_sessions', {
          id,
          user_id: session.userId,
          external_auth_id: session.externalAuthId,
          subject: session.subject,
          sid: session.sid,
          sealed: seal?.(id) ?? null,
          begin_time: session.begin,
          checked_time: session.begin,
          end_time: session.ends,
        })
        return id
      }),

    async find(id) {
      const [row] = await byId(db, id)
      return row && sessionOf(row)
    },

    async named(externalAuthId, { subject, sid }) {
      let query = db
        .selectFrom('provider_sessions')
        .selectAll()
        .where('external_auth_id', '=', externalAuthId)
      if (subject !== undefined) query = query.where('subject', '=', subject)
      if (sid !== undefined) query = query.where('sid', '=', sid)
      return subject === undefined && sid === undefined ? [] : (await query.execute()).map(sessionOf)
    },

    async list() {
      const rows = await db.selectFrom('provider_sessions').selectAll().orderBy('checked_time').execute()
      return rows.map(sessionOf)
    },

    async isSignedIn(id) {
      const rows = db.selectFrom('sign_ins').select('id').where('provider_session_id', '=', id).limit(1)
      return (await rows.execute()).length > 0
    },

    async checked(id, { sealed, time, ends }) {
      const change = {
        checked_time: time,
        ...(sealed && { sealed }),
        ...(ends !== undefined && { end_time: ends }),
      }
      return await updateRow(db, 'provider_sessions', id, change)
    },

    signOut: (id) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('sign_ins').where('provider_session_id', '=', id).execute()
        await updateRow(tx, 'provider_sessions', id, { sealed: null })
      }),

    async remove(id) {
      const rows = db.deleteFrom('provider_sessions').where('id', '=', id)
      return (await rows.executeTakeFirstOrThrow()).numDeletedRows > 0n
    },
  }
}

/** Removes the oldest, of one user or of all, so that one more is within the limit. */
async function makeRoom(tx: Tx, limit: number, userId?: Id): Promise<void> {
  let own = tx.selectFrom('provider_sessions')
  if (userId !== undefined) own = own.where('user_id', '=', userId)
  const { total } = await own.select((e) => e.fn.countAll<number>().as('total')).executeTakeFirstOrThrow()
  const surplus = Number(total) - limit + 1
  if (surplus <= 0) return
  const oldest = own.select('id').orderBy('id').limit(surplus)
  await tx.deleteFrom('provider_sessions').where('id', 'in', oldest).execute()
}

function sessionOf(row: ProviderSessionRow): ProviderSession {
  return {
    id: row.id,
    userId: row.user_id,
    externalAuthId: row.external_auth_id,
    subject: row.subject,
    sid: row.sid,
    ...(row.sealed && { sealed: row.sealed }),
    begin: row.begin_time,
    checked: row.checked_time,
    ends: row.end_time,
  }
}

/** Certificates of users' keys by the bastion's own authority: one without its row is worth nothing. */
import { inTransaction } from './engine/commits.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext, UserCertificateRow } from './migrations/schema.ts'
import type { UserCertificate, UserCertificateRepository } from './store.ts'

/** Each sign-in with one, and each review of its sessions, runs it. */
const bySerial = keptQuery((db: Db, serial: string) =>
  db.selectFrom('user_certificates').selectAll().where('serial', '=', serial),
)

export function userCertificateRepository({ db, newId }: StoreContext): UserCertificateRepository {
  return {
    add: (certificate, most) =>
      inTransaction(db, async (tx) => {
        const { userId, begin } = certificate
        await tx.deleteFrom('user_certificates').where('end_time', '<=', begin).execute()
        const kept = tx
          .selectFrom('user_certificates')
          .select('id')
          .where('user_id', '=', userId)
          .orderBy('id', 'desc')
          .limit(most - 1)
        await tx
          .deleteFrom('user_certificates')
          .where('user_id', '=', userId)
          .where('id', 'not in', kept)
          .execute()
        const id = newId()
        await tx
          .insertInto('user_certificates')
          .values({
            id,
            user_id: userId,
            serial: String(certificate.serial),
            secret_revision: certificate.secretRevision,
            fingerprint: certificate.fingerprint,
            address: certificate.address,
            provider_session_id: certificate.providerSession ?? null,
            begin_time: begin,
            end_time: certificate.end,
          })
          .execute()
        return id
      }),

    async find(serial) {
      const [row] = await bySerial(db, String(serial))
      return row && certificateOf(row)
    },

    async ofUser(userId, now) {
      const rows = await db
        .selectFrom('user_certificates')
        .selectAll()
        .where('user_id', '=', userId)
        .where('end_time', '>', now)
        .orderBy('id')
        .execute()
      return rows.map(certificateOf)
    },

    async remove(userId, id) {
      const { numDeletedRows } = await db
        .deleteFrom('user_certificates')
        .where('user_id', '=', userId)
        .where('id', '=', id)
        .executeTakeFirstOrThrow()
      return numDeletedRows === 1n
    },

    async removeAll(userId) {
      await db.deleteFrom('user_certificates').where('user_id', '=', userId).execute()
    },
  }
}

function certificateOf(row: UserCertificateRow): UserCertificate {
  return {
    id: row.id,
    userId: row.user_id,
    serial: BigInt(row.serial),
    secretRevision: row.secret_revision,
    fingerprint: row.fingerprint,
    address: row.address,
    ...(row.provider_session_id !== null && { providerSession: row.provider_session_id }),
    begin: row.begin_time,
    end: row.end_time,
  }
}

import { sql } from 'kysely'
import { withoutIndex } from './engine/here.ts'
import { keptQuery } from './engine/kept-query.ts'
import { rowsInsert, unnested } from './engine/many-rows.ts'
import type { AuditLogRow, Db, StoreContext } from './migrations/schema.ts'
import type { AuditRepository, AuditRow } from './store.ts'

const MAX_HANDOVERS = 1000

const COLUMNS = ['sequence', 'time', 'code', 'json', 'hash', 'session'] as const

const insert = rowsInsert(
  keptQuery(
    (
      db: Db,
      sequence: number,
      time: number,
      code: string,
      json: string,
      hash: Uint8Array,
      session: string | null,
    ) => db.insertInto('audit').values({ sequence, time, code, json, hash, session }),
  ),
  keptQuery(
    (
      db: Db,
      sequence: number[],
      time: number[],
      code: string[],
      json: string[],
      hash: Uint8Array[],
      session: (string | null)[],
    ) =>
      db
        .insertInto('audit')
        .columns(COLUMNS)
        .expression(
          unnested([
            [sequence, 'bigint'],
            [time, 'bigint'],
            [code, 'text'],
            [json, 'text'],
            [hash, 'bytea'],
            [session, 'text'],
          ]),
        ),
  ),
)

const range = keptQuery((db: Db, from: number, limit: number) =>
  db.selectFrom('audit').selectAll().where('sequence', '>=', from).orderBy('sequence').limit(limit),
)

export function auditRepository({ db }: StoreContext): AuditRepository {
  return {
    async last() {
      const row = await db
        .selectFrom('audit')
        .selectAll()
        .orderBy('sequence', 'desc')
        .limit(1)
        .executeTakeFirst()
      return row && auditRow(row)
    },

    append: (rows) =>
      insert(
        db,
        rows.map(({ sequence, time, code, json, hash }) => [
          sequence,
          time,
          code,
          json,
          hash,
          sessionOf(json),
        ]),
      ),

    async range(fromSequence, limit) {
      return (await range(db, fromSequence, limit)).map(auditRow)
    },

    async ofSession(session, limit) {
      const rows = await db
        .selectFrom('audit')
        .selectAll()
        .where('session', '=', session)
        .orderBy('sequence')
        .limit(limit)
        .execute()
      return rows.map(auditRow)
    },

    async handovers() {
      const rows = await db
        .selectFrom('audit')
        .selectAll()
        // A literal, so that the index of these rows is used.
        .where('code', '=', sql.lit('audit.handover'))
        .orderBy('sequence', 'desc')
        .limit(MAX_HANDOVERS)
        .execute()
      return rows.map(auditRow)
    },

    async removeUpTo(sequence, limit) {
      const oldest = db
        .selectFrom('audit')
        .select('sequence')
        .where('sequence', '<=', sequence)
        .orderBy('sequence')
        .limit(limit)
      const { numDeletedRows } = await db
        .deleteFrom('audit')
        .where('sequence', 'in', oldest)
        .executeTakeFirst()
      return Number(numDeletedRows)
    },

    async progress(since, fromSequence, limit) {
      const rows = await db
        .selectFrom('audit')
        .selectAll()
        // A literal: an index over some rows serves a query only when its text names the same rows.
        .where('code', '=', sql.lit('recording.progress'))
        .where('time', '>=', since)
        // The whole log is behind the first row.
        .where(withoutIndex(sql.ref('sequence')), '>=', fromSequence)
        .orderBy(withoutIndex(sql.ref('sequence')))
        .limit(limit)
        .execute()
      return rows.map(auditRow)
    },
  }
}

/**
 * Returns the event's session, beside its other members or among its `fields`. Its column is only for
 * searches.
 */
function sessionOf(json: string): string | null {
  const event: unknown = JSON.parse(json)
  if (typeof event !== 'object' || event === null) return null
  const fields: unknown = 'fields' in event ? event.fields : event
  if (typeof fields !== 'object' || fields === null || !('session' in fields)) return null
  return typeof fields.session === 'string' ? fields.session : null
}

export function auditRow(row: AuditLogRow): AuditRow {
  const { sequence, time, code, json, hash, session } = row
  return { sequence, time, code, json, hash, session }
}

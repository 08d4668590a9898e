import { sql } from 'kysely'
import type { Upload, UploadState } from '../model/objects.ts'
import { inTransaction } from './engine/commits.ts'
import type { StoreContext, UploadRow } from './migrations/schema.ts'
import { cleared } from './query.ts'
import type { UploadRepository } from './store.ts'

/** The latest time that JavaScript can represent. */
export const NEVER = 8_640_000_000_000_000

export function uploadRepository({ db }: StoreContext): UploadRepository {
  return {
    async find(session) {
      const row = await db
        .selectFrom('uploads')
        .selectAll()
        .where('session_id', '=', session)
        .executeTakeFirst()
      return row && upload(row)
    },

    async due(now, limit, without) {
      const rows = await db
        .selectFrom('uploads')
        .selectAll()
        .where('due', '<=', now)
        .$if(without.length > 0, (some) => some.where('session_id', 'not in', without))
        .orderBy('due')
        .limit(limit)
        .execute()
      return rows.map(upload)
    },

    add: (session, begin, due) =>
      inTransaction(db, async (tx) => {
        await tx
          .insertInto('uploads')
          .values({ session_id: session, begin_time: begin, state: 'waiting', due, failures: 0 })
          .onConflict((conflict) => conflict.doNothing())
          .execute()
      }),

    adopt: (due) =>
      inTransaction(db, async (tx) => {
        const { numInsertedOrUpdatedRows } = await tx
          .insertInto('uploads')
          .columns(['session_id', 'begin_time', 'state', 'due', 'failures'])
          .expression((from) =>
            from
              .selectFrom('sessions')
              .select([
                'id',
                'begin_time',
                sql.lit('waiting').as('state'),
                sql.val(due).as('due'),
                sql.lit(0).as('failures'),
              ])
              .where('end_time', 'is not', null)
              .where(sql<boolean>`recording_digest <> ''`)
              .where(sql<boolean>`recording_state in ('sealed', 'recovered', 'failed')`)
              .where(sql<boolean>`id not in (select session_id from uploads)`),
          )
          .executeTakeFirstOrThrow()
        return Number(numInsertedOrUpdatedRows ?? 0)
      }),

    update: (session, state, change) =>
      inTransaction(db, async (tx) => {
        await tx
          .updateTable('uploads')
          .set({
            ...(change.state !== undefined && { state: change.state }),
            ...(change.due !== undefined && { due: change.due }),
            ...(change.failures !== undefined && { failures: change.failures }),
            upload: cleared(change, 'upload'),
            ...(change.size !== undefined && { size: change.size }),
            ...(change.sha256 !== undefined && { sha256: change.sha256 }),
            ...(change.stored !== undefined && { stored: change.stored }),
          })
          .where('session_id', '=', session)
          .where('state', '=', state)
          .execute()
      }),

    forget: (session, begin, due) =>
      inTransaction(db, async (tx) => {
        const deleting = { state: 'deleting', due, failures: 0 }
        await tx
          .insertInto('uploads')
          .values({ session_id: session, begin_time: begin, ...deleting })
          .onConflict((conflict) => conflict.column('session_id').doUpdateSet(deleting))
          .execute()
      }),

    remove: (session) =>
      inTransaction(db, async (tx) => {
        await tx.deleteFrom('uploads').where('session_id', '=', session).execute()
      }),

    keepLocal: (keep) =>
      inTransaction(db, async (tx) => {
        await tx
          .updateTable('uploads')
          .set({ due: keep === undefined ? NEVER : sql<number>`stored + ${keep}` })
          .where('state', '=', 'stored')
          .where('failures', '=', 0)
          .execute()
      }),

    async waiting() {
      const { number } = await db
        .selectFrom('uploads')
        .select((select) => select.fn.countAll<number>().as('number'))
        .where('state', '=', 'waiting')
        .executeTakeFirstOrThrow()
      return number
    },
  }
}

function upload(row: UploadRow): Upload {
  return {
    session: row.session_id,
    begin: row.begin_time,
    state: row.state as UploadState,
    due: row.due,
    failures: row.failures,
    ...(row.upload !== null && { upload: row.upload }),
    ...(row.size !== null && { size: row.size }),
    ...(row.sha256 !== null && { sha256: row.sha256 }),
    ...(row.stored !== null && { stored: row.stored }),
  }
}

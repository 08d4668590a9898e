import { setImmediate as aside } from 'node:timers/promises'
import { sql } from 'kysely'
import type { AccountingClass, LegalHold, SessionRecord } from '../model/objects.ts'
import type { Protocol, Right } from '../model/rights.ts'
import { BATCH, batchQuery } from './batches.ts'
import { inOneStatement, inTransaction, type Tx } from './engine/commits.ts'
import { MissingReferenceError } from './engine/errors.ts'
import { gathered } from './engine/gathered.ts'
import { rowsEver } from './engine/here.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import { rowsUpdate } from './engine/many-rows.ts'
import type { Db, SessionRow, StoreContext } from './migrations/schema.ts'
import { cleared, flag, json, list, listed, setColumns, write } from './query.ts'
import { column, listColumn, nullable } from './searchable.ts'
import type { SessionRepository } from './store.ts'

const TYPE = 'session'
export const SESSION_FIELDS = {
  begin: column('time', 'begin_time'),
  end: nullable('time', 'end_time'),
  user: column('label', 'user_name'),
  source_ip: column('text', 'source_ip'),
  protocol: column('label', 'protocol'),
  subprotocols: listColumn('label', 'sessions.subprotocols'),
  account: column('label', 'account'),
  domain: column('label', 'domain'),
  device: column('label', 'device'),
  service: column('label', 'service'),
  target_host: column('text', 'target_host'),
  result: nullable('label', 'result'),
  killed: { kind: 'flag', value: sql`(case when result = 'killed' then 1 else 0 end)` },
  reason: nullable('text', 'reason'),
  authorization: column('label', 'authorization_name'),
  is_recorded: column('flag', 'is_recorded'),
  bytes_in: column('integer', 'bytes_in'),
  bytes_out: column('integer', 'bytes_out'),
  'recording.state': nullable('label', 'recording_state'),
  api_key: column('label', 'api_key'),
  approval: column('label', 'approval'),
  comment: column('text', 'comment'),
  ticket: column('text', 'ticket'),
  id: column('id', 'id'),
} as const

/** The same as in the index `sessions_deletable`, letter for letter: otherwise SQLite does not use it. */
const MAY_BE_DELETED = sql<boolean>`legal_hold is null and recording_state in ('sealed', 'recovered', 'failed')`
/** The same as in the index `sessions_unsealed`. */
const IS_UNSEALED = sql<boolean>`end_time is not null and recording_state = 'failed' and recording_digest = ''`
const IS_THERE = sql<boolean>`recording_state not in ('deleted', 'missing')`

/** Returns the oldest sessions whose recordings retention may delete. */
export const deletableSessions = (db: StoreContext['db'], begunBefore: number, limit: number) =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where(MAY_BE_DELETED)
    .where('begin_time', '<', begunBefore)
    .orderBy('begin_time')
    .limit(limit)

/**
 * Sessions whose recordings are summed up at a time: with a million of them the whole sum takes a second or
 * two.
 */
const SUMMED_AT_ONCE = 2000

/** `last`: the highest id of the page. Null if there are no more. */
const recordedPage = (db: StoreContext['db'], after: string) =>
  db
    .selectFrom((from) =>
      from
        .selectFrom('sessions')
        .select(['id', sql<number | null>`case when ${IS_THERE} then recording_size end`.as('size')])
        .where('id', '>', after)
        .orderBy('id')
        .limit(SUMMED_AT_ONCE)
        .as('page'),
    )
    .select([sql<number>`coalesce(sum(size), 0)`.as('bytes'), sql<string | null>`max(id)`.as('last')])
    .executeTakeFirstOrThrow()

/** Counts the sessions; their rows are never removed. */
const countSessions = keptQuery((db: Db) =>
  db.selectNoFrom([
    sql<number>`(select ${rowsEver()} from sessions)`.as('total'),
    sql<number>`(select count(*) from sessions where end_time is null)`.as('running'),
  ]),
)

/** Sessions store names, not ids, since they outlive the objects. The newest come first. */
export function sessionRepository({ db }: StoreContext): SessionRepository {
  const ended = gathered(
    BATCH,
    ({ id }: { id: string; columns: Columns }) => id,
    (ends) => inTransaction(db, (tx) => endAll(tx, ends)),
  )
  return {
    async list({ status }, page) {
      const all = db.selectFrom('sessions').selectAll()
      const list = (matching: typeof all, count?: number) =>
        listed(matching, session, SESSION_FIELDS, ['-begin'], page, count)
      if (status === 'current') return list(all.where('end_time', 'is', null))
      const [counts] = await countSessions(db)
      const { total = 0, running = 0 } = counts ?? {}
      if (status === undefined) return list(all, total)
      return list(all.where('end_time', 'is not', null), total - running)
    },

    async find(id) {
      const row = await db.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst()
      return row && session(row)
    },

    async deletable(begunBefore, limit) {
      return (await deletableSessions(db, begunBefore, limit).execute()).map(session)
    },

    async unsealed() {
      const rows = await db
        .selectFrom('sessions')
        .selectAll()
        .where(IS_UNSEALED)
        .where('result', '<>', 'lost')
        .orderBy('begin_time')
        .execute()
      return rows.map(session)
    },

    async recordedBytes() {
      let bytes = 0
      for (let after: string | null = ''; after !== null; await aside()) {
        const page: { bytes: number; last: string | null } = await recordedPage(db, after)
        bytes += page.bytes
        after = page.last
      }
      return bytes
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.id }, async (tx) => {
        await insertRow(tx, 'sessions', {
          id: object.id,
          begin_time: object.begin,
          end_time: object.end ?? null,
          user_name: object.user,
          source_ip: object.sourceIp,
          protocol: object.protocol,
          subprotocols: JSON.stringify(object.subprotocols),
          account: object.account,
          domain: object.domain,
          device: object.device,
          service: object.service,
          target_host: object.targetHost,
          result: object.result ?? null,
          reason: object.reason ?? null,
          authorization_name: object.authorization,
          is_recorded: Number(object.isRecorded),
          bytes_in: object.bytesIn,
          bytes_out: object.bytesOut,
          ...recordingColumns(object.recording),
          legal_hold: json(object.legalHold) ?? null,
          api_key: object.apiKey ?? '',
          approval: object.approval ?? '',
          comment: object.comment ?? '',
          ticket: object.ticket ?? '',
          accounting_classes: JSON.stringify(object.accountingClasses ?? []),
        })
      }),

    // The same end may be written twice.
    update: async (id, change) => {
      const columns = changedColumns(change)
      const isThere =
        change.end === undefined
          ? await inOneStatement(db, (on) => setColumns(on, 'sessions', id, columns))
          : await ended({ id, columns })
      if (!isThere) throw new MissingReferenceError(TYPE, 'id', id)
    },
  }
}

type Columns = ReturnType<typeof changedColumns>

/** Returns the columns of a change; undefined for those that it does not name. */
function changedColumns(change: Partial<Omit<SessionRecord, 'id'>>) {
  const recording = cleared(change, 'recording')
  const hold = cleared(change, 'legalHold')
  return {
    begin_time: change.begin,
    end_time: cleared(change, 'end'),
    user_name: change.user,
    source_ip: change.sourceIp,
    protocol: change.protocol,
    subprotocols: json(change.subprotocols),
    account: change.account,
    domain: change.domain,
    device: change.device,
    service: change.service,
    target_host: change.targetHost,
    result: cleared(change, 'result'),
    reason: cleared(change, 'reason'),
    authorization_name: change.authorization,
    is_recorded: flag(change.isRecorded),
    bytes_in: change.bytesIn,
    bytes_out: change.bytesOut,
    ...(recording !== undefined && recordingColumns(recording ?? undefined)),
    legal_hold: hold === null ? null : json(hold),
  }
}

const setRows = rowsUpdate('sessions', {
  begin_time: 'bigint',
  end_time: 'bigint',
  is_recorded: 'bigint',
  bytes_in: 'bigint',
  bytes_out: 'bigint',
  recording_size: 'bigint',
})

const removeInvitations = batchQuery(1, (db, asked) =>
  db.deleteFrom('invitations').where('session', 'in', db.selectFrom(asked).select('asked.column1')),
)

/** Writes the ends of sessions, each of another one. Returns whether each is there. */
async function endAll(tx: Tx, ends: readonly { id: string; columns: Columns }[]): Promise<boolean[]> {
  await removeInvitations(
    tx,
    ends.map(({ id }) => [id]),
  )
  const there = await setRows(
    tx,
    ends.map(({ id, columns }) => {
      const named = Object.entries(columns).filter(([, value]) => value !== undefined)
      return [id, Object.fromEntries(named) as Record<string, string | number | null>]
    }),
  )
  return ends.map(({ id }) => there.has(id))
}

/** The parts that others are searched, summed and found by have columns of their own. */
function recordingColumns(recording: SessionRecord['recording']) {
  return {
    recording: json(recording) ?? null,
    recording_state: recording?.state ?? null,
    recording_size: recording?.size ?? null,
    recording_digest: recording?.digest ?? null,
  }
}

function session(row: SessionRow): SessionRecord {
  return {
    id: row.id,
    begin: row.begin_time,
    ...(row.end_time !== null && { end: row.end_time }),
    user: row.user_name,
    sourceIp: row.source_ip,
    protocol: row.protocol as Protocol,
    subprotocols: list<Right>(row.subprotocols),
    account: row.account,
    domain: row.domain,
    device: row.device,
    service: row.service,
    targetHost: row.target_host,
    ...(row.result !== null && { result: row.result as NonNullable<SessionRecord['result']> }),
    ...(row.reason !== null && { reason: row.reason }),
    authorization: row.authorization_name,
    isRecorded: row.is_recorded !== 0,
    bytesIn: row.bytes_in,
    bytesOut: row.bytes_out,
    ...(row.api_key !== '' && { apiKey: row.api_key }),
    ...(row.approval !== '' && { approval: row.approval }),
    ...(row.comment !== '' && { comment: row.comment }),
    ...(row.ticket !== '' && { ticket: row.ticket }),
    ...(row.accounting_classes !== '[]' && {
      accountingClasses: list<AccountingClass>(row.accounting_classes),
    }),
    ...(row.recording !== null && {
      recording: JSON.parse(row.recording) as NonNullable<SessionRecord['recording']>,
    }),
    ...(row.legal_hold !== null && { legalHold: JSON.parse(row.legal_hold) as LegalHold }),
  }
}

import { sql } from 'kysely'
import type { Checkout, CheckoutRecord, Id } from '../model/objects.ts'
import { ChangedError, DuplicateError, MissingReferenceError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { CheckoutRow, Db, StoreContext } from './migrations/schema.ts'
import { listed, requireIds, write } from './query.ts'
import { column, nullable } from './searchable.ts'
import type { CheckoutFilter, CheckoutRepository } from './store.ts'

const TYPE = 'checkout'
export const CHECKOUT_FIELDS = {
  kind: column('label', 'kind'),
  user: column('label', 'user_name'),
  account: column('label', 'account'),
  domain: column('label', 'domain'),
  device: column('label', 'device'),
  begin: column('time', 'begin_time'),
  expires: nullable('time', 'expires'),
  end: nullable('time', 'end_time'),
  comment: column('text', 'comment'),
  ticket: column('text', 'ticket'),
  forced_by: column('label', 'forced_by'),
  api_key: column('label', 'api_key'),
  approval: column('label', 'approval'),
  id: column('id', 'id'),
} as const

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

    async revoked(now, limit) {
      const rows = await db
        .selectFrom('checkouts as c')
        .innerJoin('approvals as p', 'p.id', 'c.approval')
        .selectAll('c')
        .where('c.end_time', 'is', null)
        .where('c.approval', '<>', '')
        .where('c.expires', '>', now)
        .where('p.state', '<>', 'accepted')
        .orderBy('c.begin_time')
        .limit(limit)
        .execute()
      return rows.map(checkout)
    },

    async out(now) {
      return (await outNow(db, now)).map(checkout)
    },

    async expired(now, limit, { expires, id } = NONE) {
      const rows = await expiredAt(db, now, expires, id, limit)
      return rows.map(checkout)
    },

    async list(filter, page) {
      const count = page?.search ? undefined : await countOf(db, filter)
      return listed(holds(db, filter), recordOf, CHECKOUT_FIELDS, ['-begin'], page, count)
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
            comment: object.comment ?? '',
            ticket: object.ticket ?? '',
            forced_by: object.forced?.by ?? '',
            forced_comment: object.forced?.comment ?? '',
            approval: object.approval ?? '',
            api_key_id: object.apiKeyId ?? '',
            severed_revision: object.severedRevision ?? 0,
          })
          .execute()
        return { ...object, id }
      }),

    shorten: async (id, to) => {
      await db
        .updateTable('checkouts')
        .set({ expires: to })
        .where('id', '=', id)
        .where('end_time', 'is', null)
        .where('expires', '>', to)
        .execute()
    },

    extend: (id, from, to, clock) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const now = clock()
        const { numUpdatedRows } = await tx
          .updateTable('checkouts')
          .set({ expires: to })
          .where('id', '=', id)
          .where('end_time', 'is', null)
          .where('expires', '=', from)
          .where('expires', '>', now)
          .executeTakeFirst()
        if (numUpdatedRows > 0n) return
        const row = await notReturned(tx).where('id', '=', id).where('expires', '>', now).executeTakeFirst()
        throw row ? new ChangedError(TYPE) : new MissingReferenceError(TYPE, 'id', id)
      }),

    end: (id, time, forced) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const { numUpdatedRows } = await tx
          .updateTable('checkouts')
          .set({
            end_time: time,
            ...(forced && { forced_by: forced.by, forced_comment: forced.comment }),
          })
          .where('id', '=', id)
          .where('end_time', 'is', null)
          .executeTakeFirst()
        if (numUpdatedRows === 0n) throw new MissingReferenceError(TYPE, 'id', id)
      }),
  }
}

const notReturned = (db: Db) =>
  db.selectFrom('checkouts').selectAll().where('end_time', 'is', null).orderBy('begin_time')

/** Without an order, which would read all checkouts there have been. */
const open = (db: Db) => db.selectFrom('checkouts').selectAll().where('end_time', 'is', null)

const outNow = keptQuery((db: Db, now: number) => open(db).where('expires', '>', now))

/** Before all others. */
const NONE = { expires: 0, id: '' }

const expiredAt = keptQuery((db: Db, now: number, expires: number, id: Id, limit: number) =>
  open(db)
    .where('expires', '<=', now)
    .where('expires', '>=', expires)
    .where((e) => e.or([e('expires', '>', expires), e('id', '>', id)]))
    .orderBy('expires')
    .orderBy('id')
    .limit(limit),
)

const activeOf = keptQuery((db: Db, accountId: Id, now: number) =>
  notReturned(db).where('account_id', '=', accountId).where('expires', '>', now),
)

const checkoutsOf = (db: Db, { now, status, of, id }: CheckoutFilter) =>
  db
    .selectFrom('checkouts as c')
    .$if(of !== undefined, (some) => some.where('c.user_id', '=', of?.id ?? ''))
    .$if(id !== undefined, (some) => some.where('c.id', '=', id ?? ''))
    .$if(status === 'current', (some) => some.where('c.end_time', 'is', null).where('c.expires', '>', now))
    .$if(status === 'closed', (some) =>
      some.where((e) => e.or([e('c.end_time', 'is not', null), e('c.expires', '<=', now)])),
    )

/** A session that has ended is found among the sessions only. */
const sessionsOf = (db: Db, { status, of, id }: CheckoutFilter) =>
  db
    .selectFrom('sessions as s')
    .where('s.end_time', 'is', null)
    .where('s.domain', '<>', '')
    .$if(status === 'closed', (none) => none.where(sql<boolean>`1 = 0`))
    .$if(of !== undefined, (some) => some.where('s.user_name', '=', of?.userName ?? ''))
    .$if(id !== undefined, (some) => some.where('s.id', '=', id ?? ''))

function holds(db: Db, filter: CheckoutFilter) {
  const checkouts = checkoutsOf(db, filter)
    // Each has its row; left joins keep the order of the index.
    .leftJoin('users as u', 'u.id', 'c.user_id')
    .leftJoin('accounts as a', 'a.id', 'c.account_id')
    .leftJoin('domains as d', 'd.id', 'a.domain_id')
    .leftJoin('devices as v', 'v.id', 'd.device_id')
    .select([
      'c.id as id',
      sql<CheckoutRecord['kind']>`'checkout'`.as('kind'),
      sql<string>`u.user_name`.as('user_name'),
      sql<string>`a.account_name`.as('account'),
      sql<string>`d.domain_name`.as('domain'),
      sql<string>`coalesce(v.device_name, '')`.as('device'),
      'c.begin_time as begin_time',
      sql<number | null>`c.expires`.as('expires'),
      'c.end_time as end_time',
      'c.api_key as api_key',
      'c.comment as comment',
      'c.ticket as ticket',
      'c.forced_by as forced_by',
      'c.forced_comment as forced_comment',
      'c.approval as approval',
    ])
  const sessions = sessionsOf(db, filter).select([
    's.id as id',
    sql<CheckoutRecord['kind']>`'session'`.as('kind'),
    's.user_name as user_name',
    's.account as account',
    's.domain as domain',
    's.device as device',
    's.begin_time as begin_time',
    sql<number | null>`s.end_time`.as('expires'),
    's.end_time as end_time',
    's.api_key as api_key',
    's.comment as comment',
    's.ticket as ticket',
    sql<string>`''`.as('forced_by'),
    sql<string>`''`.as('forced_comment'),
    's.approval as approval',
  ])
  return db.selectFrom(checkouts.unionAll(sessions).as('holds')).selectAll()
}

/** Counts without the joins, which would take most of the time. */
async function countOf(db: Db, filter: CheckoutFilter): Promise<number> {
  const count = sql<number>`count(*)`.as('count')
  const out = await checkoutsOf(db, filter).select(count).executeTakeFirstOrThrow()
  const sessions = await sessionsOf(db, filter).select(count).executeTakeFirstOrThrow()
  return out.count + sessions.count
}

type HoldRow = Awaited<ReturnType<ReturnType<typeof holds>['execute']>>[number]

function recordOf(row: HoldRow): CheckoutRecord {
  const { id, kind, account, domain, device } = row
  return {
    ...{ id, kind, user: row.user_name, account, domain, device, begin: row.begin_time },
    ...(row.expires !== null && { expires: row.expires }),
    ...told(row),
  }
}

function checkout(row: CheckoutRow): Checkout {
  return {
    id: row.id,
    accountId: row.account_id,
    userId: row.user_id,
    begin: row.begin_time,
    expires: row.expires,
    ...(row.api_key_id !== '' && { apiKeyId: row.api_key_id }),
    ...(row.severed_revision > 0 && { severedRevision: row.severed_revision }),
    ...told(row),
  }
}

type Told = Pick<
  CheckoutRow,
  'end_time' | 'api_key' | 'comment' | 'ticket' | 'forced_by' | 'forced_comment' | 'approval'
>

const told = (
  row: Told,
): Pick<Checkout, 'end' | 'apiKey' | 'comment' | 'ticket' | 'forced' | 'approval'> => ({
  ...(row.end_time !== null && { end: row.end_time }),
  ...(row.api_key !== '' && { apiKey: row.api_key }),
  ...(row.comment !== '' && { comment: row.comment }),
  ...(row.ticket !== '' && { ticket: row.ticket }),
  ...(row.approval !== '' && { approval: row.approval }),
  ...(row.forced_by !== '' && { forced: { by: row.forced_by, comment: row.forced_comment } }),
})

/** Targets that a user may open: joins from the user's groups over the authorizations to the targets. */
import { type SqlBool, sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { doHold, type TimeRule } from '../model/timeframes.ts'
import { batchQuery } from './batches.ts'
import { DEMANDS, rowConditions } from './conditions.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import type { AccessQueries, TargetFilter, TargetRow } from './store.ts'
import { accountTarget, inOrder, loginTarget, PLACE } from './target-rows.ts'
import { isTimed, timeframesOfGroups } from './timeframes.ts'

export function accessQueries({ db }: StoreContext): AccessQueries {
  return {
    async sessionTargets(userId, now, filter = {}) {
      const stored = await found(db, ACCOUNTS, userId, filter)
      const others = await found(db, LOGINS, userId, filter)
      const timeframes = await timeframesOfGroups(db, [...stored, ...others])
      const isWanted = wantedAt(now, filter.isOutside !== true)
      const rows = stored.map((row) => accountTarget(row, timeframes)).filter(isWanted)
      const logins = others.map((row) => loginTarget(row, timeframes)).filter(isWanted)
      return logins.length === 0 ? rows : inOrder([...rows, ...logins])
    },

    async grants(asked) {
      const ids = (isLogin: boolean) =>
        asked
          .filter(({ accountId }) => (accountId === undefined) === isLogin)
          .map(({ userId, serviceId, accountId = '' }) => [userId, serviceId, accountId])
      const stored = await ACCOUNTS.asked(db, ids(false))
      const others = await LOGINS.asked(db, ids(true))
      const userIds = [...stored, ...others].map(({ userId }) => userId)
      const timeframes = await timeframesOfGroups(db, [...stored, ...others])
      const rows = [
        ...stored.map((row) => accountTarget(row, timeframes)),
        ...others.map((row) => loginTarget(row, timeframes)),
      ]
      return rows.map((row, at) => ({ ...row, userId: userIds[at]! }))
    },

    async withTargets(userIds, now) {
      const have = await haveTargets(
        db,
        userIds.map((id) => [id]),
      )
      const found = new Set(have.map(({ userId }) => userId))
      const others = userIds.filter((id) => !found.has(id))
      const timed = await haveTimedTargets(
        db,
        others.map((id) => [id]),
      )
      const timeframes = await timeframesOfGroups(db, timed)
      for (const row of timed) if (doHold(timeframes(row), now)) found.add(row.userId)
      return found
    },

    async membersAmong(userIds, groupId) {
      const rows = await membersOf(
        db,
        userIds.map((id) => [id, groupId]),
      )
      return rows.map(({ userId }) => userId)
    },

    async groupsAt(targetGroupId) {
      const rows = await groupsOf(db, targetGroupId)
      return rows.map(({ groupId }) => groupId)
    },

    async hasMapping(userId) {
      const row = await grantedLogins(db)
        .select('t.service_id')
        .where('m.user_id', '=', userId)
        .where('t.kind', '=', 'mapping')
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },

    async retrievals(asked) {
      const rows = await mayRetrieve(
        db,
        asked.map(({ userId, accountId }) => [userId, accountId]),
      )
      const timeframes = await timeframesOfGroups(db, rows)
      return rows.map((row) => {
        const conditions = rowConditions(row.demands, row.active_quorum, row.inactive_quorum)
        return {
          userId: row.userId,
          accountId: row.accountId,
          authorizationId: row.id,
          authorizationName: row.authorizationName,
          timeframes: timeframes(row),
          ...(conditions && { conditions }),
        }
      })
    },
  }
}

const mayRetrieve = batchQuery(2, (db, asked) =>
  db
    .selectFrom(asked)
    .innerJoin('user_group_members as m', 'm.user_id', 'asked.column1')
    .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
    .select(['asked.column1 as userId', 'asked.column2 as accountId'])
    .innerJoin('user_groups as ug', 'ug.id', 'a.user_group_id')
    .innerJoin('target_groups as tg', 'tg.id', 'a.target_group_id')
    .select(['a.id', 'a.user_group_id as userGroupId', isTimed.as('isTimed')])
    .select(['a.active_quorum', 'a.inactive_quorum', DEMANDS, authorizationName])
    .where('a.authorize_password_retrieval', '=', 1)
    .where((e) =>
      e.or([
        e.exists(
          e
            .selectFrom('target_group_retrievals as r')
            .select('r.account_id')
            .whereRef('r.target_group_id', '=', 'a.target_group_id')
            .whereRef('r.account_id', '=', 'asked.column2'),
        ),
        e.exists(
          e
            .selectFrom('target_group_sessions as t')
            .select('t.account_id')
            .whereRef('t.target_group_id', '=', 'a.target_group_id')
            .whereRef('t.account_id', '=', 'asked.column2'),
        ),
      ]),
    )
    .orderBy('a.id'),
)

const membersOf = batchQuery(2, (db, asked) =>
  db
    .selectFrom(asked)
    .innerJoin('user_group_members as m', (on) =>
      on.onRef('m.user_id', '=', 'asked.column1').onRef('m.group_id', '=', 'asked.column2'),
    )
    .select('m.user_id as userId'),
)

const groupsOf = keptQuery((db: Db, targetGroupId: Id) =>
  db
    .selectFrom('authorizations')
    .select('user_group_id as groupId')
    .where('target_group_id', '=', targetGroupId),
)

/** Returns a test for the rows that hold now, or for those that do not. */
function wantedAt(now: number, isWithin: boolean): (row: TargetRow) => boolean {
  const known = new Map<readonly TimeRule[], boolean>()
  return ({ timeframes }) => {
    const holds = known.get(timeframes) ?? doHold(timeframes, now)
    known.set(timeframes, holds)
    return holds === isWithin
  }
}

/** A device's own account is no account of another device, whatever a target group contains. */
const isAtItsDevice = sql<SqlBool>`(d.device_id is null or d.device_id = s.device_id)`

/** Whether the target group of the row `a`, an authorization, has a target. */
const hasTarget = sql<SqlBool>`(exists (
    select 1 from target_group_sessions as t
    inner join accounts as ac on ac.id = t.account_id
    inner join domains as d on d.id = ac.domain_id
    inner join services as s on s.id = t.service_id
    where t.target_group_id = a.target_group_id and ${isAtItsDevice})
  or exists (select 1 from target_group_logins as l where l.target_group_id = a.target_group_id))`

/**
 * Asks for the authorizations of each user first, and for a target of each of them: joined in one, PostgreSQL would look
 * for a target first, expecting that one is soon found, and read all of them for a user without a right.
 */
const haveTargets = batchQuery(1, (db, asked) =>
  db
    .selectFrom(asked)
    .select('asked.column1 as userId')
    .where((e) =>
      e.exists(
        e
          .selectFrom('user_group_members as m')
          .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
          .select('a.id')
          .whereRef('m.user_id', '=', 'asked.column1')
          .where('a.authorize_sessions', '=', 1)
          .where(sql<SqlBool>`not ${isTimed}`)
          .where(hasTarget),
      ),
    ),
)

/** The same of users whose groups have timeframes, each with the group. */
const haveTimedTargets = batchQuery(1, (db, asked) =>
  db
    .selectFrom(asked)
    .innerJoin('user_group_members as m', 'm.user_id', 'asked.column1')
    .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
    .select(['m.user_id as userId', 'a.user_group_id as userGroupId', sql<number>`1`.as('isTimed')])
    .where('a.authorize_sessions', '=', 1)
    .where(sql<SqlBool>`${isTimed}`)
    .where(hasTarget),
)

/** Stored accounts that users may open sessions with. */
const grantedAccounts = (db: Db) =>
  db
    .selectFrom('user_group_members as m')
    .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
    .innerJoin('user_groups as ug', 'ug.id', 'a.user_group_id')
    .innerJoin('target_groups as tg', 'tg.id', 'a.target_group_id')
    .innerJoin('target_group_sessions as t', 't.target_group_id', 'a.target_group_id')
    .innerJoin('accounts as ac', 'ac.id', 't.account_id')
    .innerJoin('domains as d', 'd.id', 'ac.domain_id')
    .innerJoin('services as s', 's.id', 't.service_id')
    .innerJoin('devices as dev', 'dev.id', 's.device_id')
    .leftJoin('connection_policies as cp', 'cp.id', 's.connection_policy_id')
    .where('a.authorize_sessions', '=', 1)
    .where(isAtItsDevice)

const placedAccounts = (db: Db) =>
  grantedAccounts(db)
    .select(PLACE)
    .select([
      'ac.id as accountId',
      'ac.account_name as accountName',
      'ac.account_login as accountLogin',
      'd.id as domainId',
      'd.domain_name as domainName',
      'd.device_id as localTo',
      authorizationName,
      isTimed.as('isTimed'),
    ])
    .orderBy('dev.name_key')
    .orderBy('s.name_key')
    .orderBy('ac.name_key')
    .orderBy('d.name_key')
    .orderBy('a.id')

const ACCOUNTS = {
  all: keptQuery((db: Db, userId: Id) => placedAccounts(db).where('m.user_id', '=', userId)),
  ofDevice: keptQuery((db: Db, userId: Id, device: string) =>
    placedAccounts(db).where('m.user_id', '=', userId).where('dev.name_key', '=', device),
  ),
  asked: batchQuery(3, (db, asked) =>
    placedAccounts(db)
      .innerJoin(asked, (on) =>
        on
          .onRef('asked.column1', '=', 'm.user_id')
          .onRef('asked.column2', '=', 't.service_id')
          .onRef('asked.column3', '=', 't.account_id'),
      )
      .select('m.user_id as userId'),
  ),
}

/** Services where users log in with their own name and password, or with typed credentials. */
const placedLogins = (db: Db) =>
  grantedLogins(db)
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .innerJoin('user_groups as ug', 'ug.id', 'a.user_group_id')
    .innerJoin('target_groups as tg', 'tg.id', 'a.target_group_id')
    .innerJoin('services as s', 's.id', 't.service_id')
    .innerJoin('devices as dev', 'dev.id', 's.device_id')
    .leftJoin('connection_policies as cp', 'cp.id', 's.connection_policy_id')
    .select(PLACE)
    .select(['t.kind', 'u.user_name as userName', authorizationName, isTimed.as('isTimed')])
    .orderBy('dev.name_key')
    .orderBy('s.name_key')
    .orderBy('t.kind')
    .orderBy('a.id')

const LOGINS = {
  all: keptQuery((db: Db, userId: Id) => placedLogins(db).where('m.user_id', '=', userId)),
  ofDevice: keptQuery((db: Db, userId: Id, device: string) =>
    placedLogins(db).where('m.user_id', '=', userId).where('dev.name_key', '=', device),
  ),
  asked: batchQuery(3, (db, asked) =>
    placedLogins(db)
      .innerJoin(asked, (on) =>
        on.onRef('asked.column1', '=', 'm.user_id').onRef('asked.column2', '=', 't.service_id'),
      )
      .select('m.user_id as userId'),
  ),
}

/** The queries of one kind of target. */
interface Queries<R> {
  all: (db: Db, userId: Id) => Promise<R[]>
  ofDevice: (db: Db, userId: Id, device: string) => Promise<R[]>
}

function found<R>(db: Db, queries: Queries<R>, userId: Id, filter: TargetFilter): Promise<R[]> {
  return filter.device === undefined
    ? queries.all(db, userId)
    : queries.ofDevice(db, userId, nameKey(filter.device))
}

function grantedLogins(db: Db) {
  return db
    .selectFrom('user_group_members as m')
    .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
    .innerJoin('target_group_logins as t', 't.target_group_id', 'a.target_group_id')
    .where('a.authorize_sessions', '=', 1)
}

const authorizationName = sql<string>`ug.group_name || ':' || tg.group_name`.as('authorizationName')

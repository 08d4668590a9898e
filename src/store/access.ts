/** Targets that a user may open: joins from the user's groups over the authorizations to the targets. */
import { sql } from 'kysely'
import { mappedLogin } from '../model/logon.ts'
import { nameKey } from '../model/names.ts'
import type { HostKeyPolicy, Id, RecordingMode, TargetKind } from '../model/objects.ts'
import type { Protocol, Right } from '../model/rights.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import { list } from './query.ts'
import type { AccessQueries, TargetFilter, TargetRow } from './store.ts'

export function accessQueries({ db }: StoreContext): AccessQueries {
  return {
    async sessionTargets(userId, filter = {}) {
      const isLogin = 'serviceId' in filter && filter.accountId === undefined
      const stored = isLogin ? [] : await accountTargets(db, userId, filter)
      const others = 'serviceId' in filter && !isLogin ? [] : await loginTargets(db, userId, filter)
      return others.length === 0 ? stored : inOrder([...stored, ...others])
    },

    async hasTarget(userId) {
      const [stored] = await anyAccount(db, userId)
      return stored !== undefined || (await anyLogin(db, userId)).length > 0
    },

    async hasMapping(userId) {
      const row = await loginsOf(db, userId)
        .select('t.service_id')
        .where('t.kind', '=', 'mapping')
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },

    async retrievalAuthorizations(userId, accountId) {
      const rows = await db
        .selectFrom('user_group_members as m')
        .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
        .select('a.id')
        .where('m.user_id', '=', userId)
        .where('a.authorize_password_retrieval', '=', 1)
        .where((e) =>
          e.or([
            e.exists(
              e
                .selectFrom('target_group_retrievals as r')
                .select('r.account_id')
                .whereRef('r.target_group_id', '=', 'a.target_group_id')
                .where('r.account_id', '=', accountId),
            ),
            e.exists(
              e
                .selectFrom('target_group_sessions as t')
                .select('t.account_id')
                .whereRef('t.target_group_id', '=', 'a.target_group_id')
                .where('t.account_id', '=', accountId),
            ),
          ]),
        )
        .orderBy('a.id')
        .execute()
      return rows.map((row) => row.id)
    },
  }
}

/** Stored accounts that the user may open sessions with. */
async function accountTargets(db: Db, userId: Id, filter: TargetFilter): Promise<TargetRow[]> {
  return (await found(db, ACCOUNTS, userId, filter)).map((row) =>
    target(row, {
      kind: 'account',
      accountId: row.accountId,
      accountName: row.accountName,
      accountLogin: row.accountLogin,
      domainId: row.domainId,
      domainName: row.domainName,
      isLocal: row.localTo !== null,
    }),
  )
}

const grantedAccounts = (db: Db, userId: Id) =>
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
    .where('m.user_id', '=', userId)
    .where('a.authorize_sessions', '=', 1)
    // A device's own account is no account of another device, whatever a target group contains.
    .where((e) => e.or([e('d.device_id', 'is', null), e('d.device_id', '=', e.ref('s.device_id'))]))

const anyAccount = keptQuery((db: Db, userId: Id) => grantedAccounts(db, userId).select('a.id').limit(1))

const accountsOf = (db: Db, userId: Id) =>
  grantedAccounts(db, userId)
    .select(PLACE)
    .select([
      'ac.id as accountId',
      'ac.account_name as accountName',
      'ac.account_login as accountLogin',
      'd.id as domainId',
      'd.domain_name as domainName',
      'd.device_id as localTo',
      authorizationName,
    ])
    .orderBy('dev.name_key')
    .orderBy('s.name_key')
    .orderBy('ac.name_key')
    .orderBy('d.name_key')
    .orderBy('a.id')

const ACCOUNTS = {
  all: keptQuery(accountsOf),
  ofDevice: keptQuery((db: Db, userId: Id, device: string) =>
    accountsOf(db, userId).where('dev.name_key', '=', device),
  ),
  ofService: keptQuery((db: Db, userId: Id, serviceId: Id, accountId: Id) =>
    accountsOf(db, userId).where('t.service_id', '=', serviceId).where('t.account_id', '=', accountId),
  ),
}

/** Returns the services where users log in with their own name and password, or with typed credentials. */
async function loginTargets(db: Db, userId: Id, filter: TargetFilter): Promise<TargetRow[]> {
  return (await found(db, LOGINS, userId, filter)).map((row) => {
    const kind = row.kind as Exclude<TargetKind, 'account'>
    const login = kind === 'mapping' ? mappedLogin(row.userName) : ''
    const nobody = { accountId: undefined, domainId: undefined, domainName: '', isLocal: false }
    return target(row, { kind, ...nobody, accountName: login, accountLogin: login })
  })
}

const anyLogin = keptQuery((db: Db, userId: Id) => loginsOf(db, userId).select('a.id').limit(1))

const placedLoginsOf = (db: Db, userId: Id) =>
  loginsOf(db, userId)
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .innerJoin('user_groups as ug', 'ug.id', 'a.user_group_id')
    .innerJoin('target_groups as tg', 'tg.id', 'a.target_group_id')
    .innerJoin('services as s', 's.id', 't.service_id')
    .innerJoin('devices as dev', 'dev.id', 's.device_id')
    .leftJoin('connection_policies as cp', 'cp.id', 's.connection_policy_id')
    .select(PLACE)
    .select(['t.kind', 'u.user_name as userName', authorizationName])
    .orderBy('dev.name_key')
    .orderBy('s.name_key')
    .orderBy('t.kind')
    .orderBy('a.id')

const LOGINS = {
  all: keptQuery(placedLoginsOf),
  ofDevice: keptQuery((db: Db, userId: Id, device: string) =>
    placedLoginsOf(db, userId).where('dev.name_key', '=', device),
  ),
  ofService: keptQuery((db: Db, userId: Id, serviceId: Id) =>
    placedLoginsOf(db, userId).where('t.service_id', '=', serviceId),
  ),
}

/** The queries of one kind of target. */
interface Queries<R> {
  all: (db: Db, userId: Id) => Promise<R[]>
  ofDevice: (db: Db, userId: Id, device: string) => Promise<R[]>
  /** `accountId` is empty for a target without a stored account. */
  ofService: (db: Db, userId: Id, serviceId: Id, accountId: Id) => Promise<R[]>
}

function found<R>(db: Db, queries: Queries<R>, userId: Id, filter: TargetFilter): Promise<R[]> {
  if ('serviceId' in filter) return queries.ofService(db, userId, filter.serviceId, filter.accountId ?? '')
  return filter.device === undefined
    ? queries.all(db, userId)
    : queries.ofDevice(db, userId, nameKey(filter.device))
}

function loginsOf(db: Db, userId: Id) {
  return db
    .selectFrom('user_group_members as m')
    .innerJoin('authorizations as a', 'a.user_group_id', 'm.group_id')
    .innerJoin('target_group_logins as t', 't.target_group_id', 'a.target_group_id')
    .where('m.user_id', '=', userId)
    .where('a.authorize_sessions', '=', 1)
}

const authorizationName = sql<string>`ug.group_name || ':' || tg.group_name`.as('authorizationName')

const PLACE = [
  'dev.id as deviceId',
  'dev.device_name as deviceName',
  'dev.description as deviceDescription',
  'dev.host as host',
  's.id as serviceId',
  's.service_name as serviceName',
  's.protocol as protocol',
  's.port as port',
  's.subprotocols as serviceSubprotocols',
  's.host_key_policy as ownPolicy',
  'cp.id as connectionPolicyId',
  'cp.host_key_policy as connectionPolicy',
  'a.id as authorizationId',
  'a.subprotocols as authorizationSubprotocols',
  'a.is_recorded as isRecorded',
  'a.recording_mode as recordingMode',
] as const

interface PlaceRow {
  deviceId: string
  deviceName: string
  deviceDescription: string
  host: string
  serviceId: string
  serviceName: string
  protocol: string
  port: number
  serviceSubprotocols: string
  ownPolicy: string
  connectionPolicyId: string | null
  connectionPolicy: string | null
  authorizationId: string
  authorizationName: string
  authorizationSubprotocols: string
  isRecorded: number
  recordingMode: string
}

type Who = Pick<
  TargetRow,
  'kind' | 'accountId' | 'accountName' | 'accountLogin' | 'domainId' | 'domainName' | 'isLocal'
>

function target(row: PlaceRow, who: Who): TargetRow {
  // Copy the fields one by one: copying the rest of a row takes more than twice as long, which shows with ten
  // thousand targets.
  return {
    kind: who.kind,
    accountId: who.accountId,
    accountName: who.accountName,
    accountLogin: who.accountLogin,
    domainId: who.domainId,
    domainName: who.domainName,
    isLocal: who.isLocal,
    deviceId: row.deviceId,
    deviceName: row.deviceName,
    deviceDescription: row.deviceDescription,
    host: row.host,
    serviceId: row.serviceId,
    serviceName: row.serviceName,
    protocol: row.protocol as Protocol,
    port: row.port,
    serviceSubprotocols: list<Right>(row.serviceSubprotocols),
    connectionPolicyId: row.connectionPolicyId ?? undefined,
    // Default to the stricter policy.
    hostKeyPolicy: (row.ownPolicy || row.connectionPolicy || 'pinned') as HostKeyPolicy,
    authorizationId: row.authorizationId,
    authorizationName: row.authorizationName,
    authorizationSubprotocols: list<Right>(row.authorizationSubprotocols),
    isRecorded: row.isRecorded !== 0,
    recordingMode: row.recordingMode as RecordingMode,
  }
}

/** Sorts by device, then by service; within a service the order stays. */
function inOrder(rows: readonly TargetRow[]): TargetRow[] {
  const keyed = rows.map((row) => ({
    row,
    device: nameKey(row.deviceName),
    service: nameKey(row.serviceName),
  }))
  keyed.sort((a, b) => compare(a.device, b.device) || compare(a.service, b.service))
  return keyed.map(({ row }) => row)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

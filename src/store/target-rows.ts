/** Targets as the joins of access.ts return them. */
import { mappedLogin } from '../model/logon.ts'
import { nameKey } from '../model/names.ts'
import type { HostKeyPolicy, RecordingMode, TargetKind } from '../model/objects.ts'
import type { Protocol, Right } from '../model/rights.ts'
import { DEMANDS, rowConditions } from './conditions.ts'
import { list } from './query.ts'
import type { TargetRow } from './store.ts'

/** The columns of each kind of target. */
export const PLACE = [
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
  DEMANDS,
  'a.active_quorum as activeQuorum',
  'a.inactive_quorum as inactiveQuorum',
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
  demands: number
  activeQuorum: number
  inactiveQuorum: number
}

interface AccountTargetRow extends PlaceRow {
  accountId: string
  accountName: string
  accountLogin: string
  domainId: string
  domainName: string
  localTo: string | null
}

export function accountTarget(row: AccountTargetRow): TargetRow {
  const { accountId, accountName, accountLogin, domainId, domainName, localTo } = row
  const isLocal = localTo !== null
  return target(row, { kind: 'account', accountId, accountName, accountLogin, domainId, domainName, isLocal })
}

export function loginTarget(row: PlaceRow & { kind: string; userName: string }): TargetRow {
  const kind = row.kind as Exclude<TargetKind, 'account'>
  const login = kind === 'mapping' ? mappedLogin(row.userName) : ''
  const nobody = { accountId: undefined, domainId: undefined, domainName: '', isLocal: false }
  return target(row, { kind, ...nobody, accountName: login, accountLogin: login })
}

type Who = Pick<
  TargetRow,
  'kind' | 'accountId' | 'accountName' | 'accountLogin' | 'domainId' | 'domainName' | 'isLocal'
>

function target(row: PlaceRow, who: Who): TargetRow {
  // Copy the fields one by one: copying the rest of a row takes more than twice as long, which shows with ten
  // thousand targets.
  const conditions = rowConditions(row.demands, row.activeQuorum, row.inactiveQuorum)
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
    ...(conditions && { conditions }),
  }
}

/** Sorts by device, then by service; within a service the order stays. */
export function inOrder(rows: readonly TargetRow[]): TargetRow[] {
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

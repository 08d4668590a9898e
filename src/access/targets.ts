/**
 * Resolves the target that a user means, and the user's rights there: the rules of docs/clients.md (login string,
 * Rights) over the rows that the store's joins return for this user. Pure.
 */
import type { Wanted } from '../model/approvals.ts'
import { quorumNow, requiresFactor, wantedOf } from '../model/conditions.ts'
import { formatCanonical, formatTarget, type WantedTarget } from '../model/login.ts'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { grantedRights, type Protocol, type Right } from '../model/rights.ts'
import type { TargetRow } from '../store/store.ts'

/** Number of candidates that an ambiguous answer names. */
export const MAX_CANDIDATES = 10

/**
 * One account through one service of one device, over all authorizations that grant it. For interactive login
 * the account is empty until the user has named one.
 */
export interface Target
  extends Omit<
    TargetRow,
    | 'authorizationId'
    | 'authorizationName'
    | 'authorizationSubprotocols'
    | 'timeframes'
    | 'serviceSubprotocols'
    | 'isRecorded'
    | 'recordingMode'
    | 'conditions'
  > {
  rights: Right[]
  isRecorded: boolean
  /** Recorded strictly: output waits for its recording. */
  isStrict: boolean
  authorizationIds: string[]
  authorizationNames: string[]
  /**
   * Number of approvers that have to agree; `authorizationIds` has one then. Absent if one of the authorizations needs
   * none: those that need one count for nothing.
   */
  quorum?: number
  /** Set if the user is asked for a reason. */
  wanted?: { comment: Wanted; ticket: Wanted }
  /** One of the authorizations is critical. */
  isCritical?: true
  /** It is out of its timeframes: only approvers open it. */
  isOutside?: true
  /** Another user has to watch the session. */
  isWatched?: true
  /** The user has to prove a second factor on the connection. */
  needsFactor?: true
}

/** How rows with conditions count. */
export interface Counting {
  /** The authorization of an accepted approval: it alone counts. */
  approved?: Id
  /** The rows are those outside of their timeframes. */
  isOutside?: boolean
  /** The user has proved a second factor: rows that require one count like others. */
  hasFactor?: boolean | undefined
}

/** Protocols that each front can lead to: a terminal to all terminal protocols, a screen to its own kind. */
const REACHED_BY: Readonly<Record<Protocol, readonly Protocol[]>> = {
  SSH: ['SSH', 'TELNET', 'RLOGIN'],
  TELNET: ['SSH', 'TELNET', 'RLOGIN'],
  RLOGIN: ['SSH', 'TELNET', 'RLOGIN'],
  VNC: ['VNC'],
  RDP: ['RDP'],
}

export type Resolution =
  | { result: 'found'; target: Target }
  /** Does not exist or is not allowed: one answer for both (invariant 7). `message` is for the user. */
  | { result: 'unknown'; message: string }
  /** Several targets match; `message` names the candidates and is for the user. */
  | { result: 'ambiguous'; message: string; candidates: string[] }

/** `ACCOUNT@DOMAIN:DEVICE:SERVICE`; without a stored account `ACCOUNT@DEVICE:SERVICE` or `@DEVICE:SERVICE`. */
export function canonicalName(
  row: Pick<TargetRow, 'accountName' | 'domainName' | 'deviceName' | 'serviceName'>,
): string {
  return formatCanonical({
    account: row.accountName,
    domain: row.domainName,
    device: row.deviceName,
    service: row.serviceName,
  })
}

/** Lists the targets that a front of this protocol leads to, each once, in the rows' order. */
export function targetsOf(rows: readonly TargetRow[], front: Protocol, counting: Counting = {}): Target[] {
  const byTarget = new Map<string, TargetRow[]>()
  for (const row of rows) {
    if (!REACHED_BY[front].includes(row.protocol)) continue
    const id = `${row.kind} ${row.accountId} ${row.serviceId}`
    const known = byTarget.get(id)
    if (known) known.push(row)
    else byTarget.set(id, [row])
  }
  return [...byTarget.values()].flatMap((all) => {
    const counted = chosen(all, counting)
    return counted.rows.length === 0 ? [] : [merged(counted)]
  })
}

/**
 * Returns the one target among the user's rows that `wanted` names, by these defaults:
 *
 * - No account: the interactive login if the user has one there, since it has no other name; else the only account.
 * - No domain: the device's own account, else the only stored account, else the user's own name (account mapping),
 *   else that login by interactive login. An empty domain means no stored account.
 * - No service: the only one of the front's own protocol, else the only one that the front leads to.
 */
export function resolveTarget(
  rows: readonly TargetRow[],
  wanted: WantedTarget,
  front: Protocol,
  counting?: Counting,
): Resolution {
  const there = targetsOf(rows, front, counting).filter(
    (target) => isSame(target.deviceName, wanted.device) && isSame(target.serviceName, wanted.service),
  )
  const own = wanted.service === undefined ? there.filter(({ protocol }) => protocol === front) : []
  const ofOwn = preferred(own, wanted)
  const left = ofOwn.length > 0 ? ofOwn : preferred(there, wanted)
  const [first, ...others] = left
  if (!first) {
    const message = `the target ${formatTarget(wanted)} does not exist, or you may not open it`
    return { result: 'unknown', message }
  }
  if (others.length === 0) return { result: 'found', target: first }
  const candidates = left.map(canonicalName)
  const named = candidates.slice(0, MAX_CANDIDATES).join(', ')
  const more = MAX_CANDIDATES < candidates.length ? ` and ${candidates.length - MAX_CANDIDATES} more` : ''
  const message = `${formatTarget(wanted)} may mean several targets, name one of them: ${named}${more}`
  return { result: 'ambiguous', message, candidates }
}

/** Returns the targets that match best, in the order of preference above. */
function preferred(there: readonly Target[], { account, domain }: WantedTarget): readonly Target[] {
  const interactive = there.filter(({ kind }) => kind === 'interactive')
  if (account === '') return interactive
  if (account === undefined) {
    const services = new Set(there.map(({ serviceId }) => serviceId))
    return interactive.length > 0 && services.size === 1 ? interactive : there
  }
  const named = there.filter(
    (target) =>
      isSame(target.accountName, account) && (domain === undefined || isSame(target.domainName, domain)),
  )
  const stored = named.filter(({ kind }) => kind === 'account')
  const own = stored.filter((target) => target.isLocal)
  if (stored.length > 0) return own.length > 0 ? own : stored
  const mapped = named.filter(({ kind }) => kind === 'mapping')
  if (mapped.length > 0 || (domain !== undefined && domain !== '')) return mapped
  return interactive.map((target) => ({ ...target, accountName: account, accountLogin: account }))
}

function isSame(name: string, want: string | undefined): boolean {
  return want === undefined || nameKey(name) === nameKey(want)
}

/** The rows of one target that count, and how many approvers have to agree. */
interface Chosen {
  rows: readonly TargetRow[]
  quorum: number
  isOutside: boolean
  needsFactor: boolean
}

/**
 * Returns the rows that ask for nothing and grant a right; if there are none, those that require a second factor; if there
 * are none either, the first that needs an approval: never rights of several kinds.
 */
function chosen(rows: readonly TargetRow[], { approved, isOutside = false, hasFactor }: Counting): Chosen {
  const quorumOf = (row: TargetRow) => quorumNow(row.conditions, !isOutside)
  const isLacking = ({ conditions }: TargetRow) => !hasFactor && requiresFactor(conditions)
  const counted = (some: readonly TargetRow[], quorum = 0, outside = isOutside): Chosen => ({
    rows: some,
    quorum,
    isOutside: outside,
    needsFactor: some.some(isLacking),
  })
  if (approved !== undefined) return counted(rows.filter((row) => row.authorizationId === approved))
  const open = rows.filter((row) => quorumOf(row) === 0)
  const free = open.filter((row) => !isLacking(row))
  if (rightsOf(free).length > 0) return counted(free, 0, false)
  const askingAll = rows.filter((row) => (quorumOf(row) ?? 0) > 0)
  const granting = askingAll.filter((row) => rightsOf([row]).length > 0)
  const asking = granting.find((row) => !isLacking(row)) ?? granting[0] ?? askingAll[0]
  if (!asking || rightsOf(open).length > 0) return counted(open, 0, false)
  return counted([asking], quorumOf(asking))
}

function rightsOf(rows: readonly TargetRow[]): Right[] {
  const [first] = rows
  if (!first) return []
  const granted = rows.map((row) => row.authorizationSubprotocols)
  return grantedRights(first.protocol, granted, first.serviceSubprotocols)
}

function merged({ rows, quorum, isOutside, needsFactor }: Chosen): Target {
  const {
    authorizationId: _id,
    authorizationName: _name,
    authorizationSubprotocols: _granted,
    timeframes: _timeframes,
    isRecorded: _recorded,
    recordingMode: _mode,
    conditions: _conditions,
    serviceSubprotocols: _allowed,
    ...target
  } = rows[0]!
  const wanted = wantedOf(rows.map(({ conditions }) => conditions))
  return {
    ...target,
    rights: rightsOf(rows),
    // One authorization that requires recording is enough.
    isRecorded: rows.some((row) => row.isRecorded),
    isStrict: rows.some((row) => row.isRecorded && row.recordingMode === 'strict'),
    authorizationIds: rows.map((row) => row.authorizationId),
    authorizationNames: rows.map((row) => row.authorizationName),
    ...(quorum > 0 && { quorum }),
    ...(isOutside && { isOutside: true as const }),
    ...(needsFactor && { needsFactor: true as const }),
    ...((wanted.comment !== 'none' || wanted.ticket !== 'none') && { wanted }),
    ...(rows.some(({ conditions }) => conditions?.isCritical) && { isCritical: true as const }),
    ...(rows.some(({ conditions }) => conditions?.fourEyes) && { isWatched: true as const }),
  }
}

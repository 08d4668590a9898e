/**
 * Which target a user means, and what they may do there: the rules of contract.md (Login string, Rights) over
 * the rows that the store's joins gave for this user. Pure.
 */
import { formatCanonical, formatTarget, type WantedTarget } from '../model/login.ts'
import { nameKey } from '../model/names.ts'
import { grantedRights, type Protocol, type Right } from '../model/rights.ts'
import type { TargetRow } from '../store/store.ts'

/** How many candidates an answer names. */
export const MAX_CANDIDATES = 10

/**
 * One account through one service of one device, over all authorizations that grant it. Of an interactive login the
 * account is empty until the person has named one.
 */
export interface Target
  extends Omit<
    TargetRow,
    | 'authorizationId'
    | 'authorizationName'
    | 'authorizationSubprotocols'
    | 'serviceSubprotocols'
    | 'isRecorded'
    | 'recordingMode'
  > {
  rights: Right[]
  isRecorded: boolean
  /** Recorded, and strictly. */
  isStrict: boolean
  authorizationIds: string[]
  authorizationNames: string[]
}

/** What each front can lead to: where there is a terminal, terminals of every kind; a screen to screens of its kind. */
const REACHED_BY: Readonly<Record<Protocol, readonly Protocol[]>> = {
  SSH: ['SSH', 'TELNET', 'RLOGIN'],
  TELNET: ['SSH', 'TELNET', 'RLOGIN'],
  RLOGIN: ['SSH', 'TELNET', 'RLOGIN'],
  VNC: ['VNC'],
  RDP: ['RDP'],
}

export type Resolution =
  | { result: 'found'; target: Target }
  /** Does not exist or is not allowed: one answer for both (invariant 7). For the user. */
  | { result: 'unknown'; message: string }
  /** More than one is meant; `message` names the candidates. For the user. */
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

/** The targets that a front of the protocol leads to, each once, in the rows' order. */
export function targetsOf(rows: readonly TargetRow[], front: Protocol): Target[] {
  const byTarget = new Map<string, TargetRow[]>()
  for (const row of rows) {
    if (!REACHED_BY[front].includes(row.protocol)) continue
    const id = `${row.kind} ${row.accountId} ${row.serviceId}`
    const known = byTarget.get(id)
    if (known) known.push(row)
    else byTarget.set(id, [row])
  }
  return [...byTarget.values()].map(merged)
}

/**
 * The one target that `wanted` means among the user's rows.
 *
 * - No account: where the user may name one (interactive login) just that, for it has no other name; else the only
 *   one there. No domain: the device's own account first, else the only stored one, else the user's own name (account
 *   mapping), else that login, for interactive login. An empty domain: no stored account.
 * - No service: the only one of the front's own protocol, else the only one that it leads to.
 */
export function resolveTarget(rows: readonly TargetRow[], wanted: WantedTarget, front: Protocol): Resolution {
  const there = targetsOf(rows, front).filter(
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

/** Those of the targets there that are meant, before others that might be. */
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

function merged(rows: readonly TargetRow[]): Target {
  const {
    authorizationId: _id,
    authorizationName: _name,
    authorizationSubprotocols: _granted,
    serviceSubprotocols,
    isRecorded: _recorded,
    recordingMode: _mode,
    ...target
  } = rows[0]!
  const granted = rows.map((row) => row.authorizationSubprotocols)
  return {
    ...target,
    rights: grantedRights(target.protocol, granted, serviceSubprotocols),
    // one authorization that wants the record is enough
    isRecorded: rows.some((row) => row.isRecorded),
    isStrict: rows.some((row) => row.isRecorded && row.recordingMode === 'strict'),
    authorizationIds: rows.map((row) => row.authorizationId),
    authorizationNames: rows.map((row) => row.authorizationName),
  }
}

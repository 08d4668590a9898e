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

/** One account through one service of one device, over all authorizations that grant it. */
export interface Target
  extends Omit<
    TargetRow,
    | 'authorizationId'
    | 'authorizationName'
    | 'authorizationSubprotocols'
    | 'serviceSubprotocols'
    | 'isRecorded'
  > {
  rights: Right[]
  isRecorded: boolean
  authorizationIds: string[]
  authorizationNames: string[]
}

export type Resolution =
  | { result: 'found'; target: Target }
  /** Does not exist or is not allowed: one answer for both (invariant 7). For the user. */
  | { result: 'unknown'; message: string }
  /** More than one is meant; `message` names the candidates. For the user. */
  | { result: 'ambiguous'; message: string; candidates: string[] }

/** `ACCOUNT@DOMAIN:DEVICE:SERVICE`. */
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

/** The targets of a protocol, each once, in the rows' order. */
export function targetsOf(rows: readonly TargetRow[], protocol: Protocol): Target[] {
  const byTarget = new Map<string, TargetRow[]>()
  for (const row of rows) {
    if (row.protocol !== protocol) continue
    const id = `${row.accountId} ${row.serviceId}`
    const known = byTarget.get(id)
    if (known) known.push(row)
    else byTarget.set(id, [row])
  }
  return [...byTarget.values()].map(merged)
}

/**
 * The one target that `wanted` means among the user's rows.
 * No account: the only one there. No domain: the device's own account first, else the only one. No service:
 * the only one of the protocol.
 */
export function resolveTarget(
  rows: readonly TargetRow[],
  wanted: WantedTarget,
  protocol: Protocol,
): Resolution {
  const is = (name: string, want: string | undefined) => want === undefined || nameKey(name) === nameKey(want)
  const matching = targetsOf(rows, protocol).filter(
    (target) =>
      is(target.deviceName, wanted.device) &&
      is(target.accountName, wanted.account) &&
      is(target.domainName, wanted.domain) &&
      is(target.serviceName, wanted.service),
  )
  const own = wanted.account === undefined ? [] : matching.filter((target) => target.isLocal)
  const left = own.length > 0 ? own : matching
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

function merged(rows: readonly TargetRow[]): Target {
  const {
    authorizationId: _id,
    authorizationName: _name,
    authorizationSubprotocols: _granted,
    serviceSubprotocols,
    isRecorded: _recorded,
    ...target
  } = rows[0]!
  const granted = rows.map((row) => row.authorizationSubprotocols)
  return {
    ...target,
    rights: grantedRights(target.protocol, granted, serviceSubprotocols),
    // one authorization that wants the record is enough
    isRecorded: rows.some((row) => row.isRecorded),
    authorizationIds: rows.map((row) => row.authorizationId),
    authorizationNames: rows.map((row) => row.authorizationName),
  }
}

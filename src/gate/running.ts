/** The running sessions, and the fields that each of their events carries. */

import type { Target } from '../access/targets.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Reason, Source } from '../contract/gate.ts'
import { apiKeyOf, type Basis } from '../identity/basis.ts'
import type { Id, SessionRecord } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'
import type { ElsewhereSession } from './elsewhere.ts'
import type { Forwarding } from './forwarding.ts'
import type { HandOut } from './hand-out.ts'
import type { Hold, HoldCause } from './holds.ts'

/** The approval of a running session. */
export interface SessionApproval {
  id: Id
  authorizationId: Id
  /** Milliseconds since the epoch. */
  end: number
  isWarned?: true
}

export interface RunningSession {
  id: Id
  userId: Id
  user: string
  source: Source
  target: Target
  /** Milliseconds since the epoch. */
  begin: number
  isRecorded: boolean
  /** The recording on the disk, from which watchers' keyframes are drawn. */
  recording?: { path: string; key: Secret }
  /** Milliseconds that approvers have for a command line. */
  askMs: number
  /** Whether the user is notified when the session is watched. */
  tellsWatched: boolean
  /** Whether the target is reached from a local port below 1024. */
  usesPrivilegedPort: boolean
  /** The account's domain has a Kerberos realm, and the policy allows Kerberos. */
  hasKerberos: boolean
  /** Authorities for the target's host key, from the connection policy. */
  hostCaKeys: readonly string[]
  /** Of the account's secret, when the session began: a later one ends it. Absent without a stored account. */
  severedRevision?: number
  /** Basis of the user's sign-in. */
  basis: Basis
  /** The stored credentials that wait for the target's host key. Absent once they are handed out. */
  handOut?: HandOut
  /** Set if the user had proved a second factor: authorizations that require one count, too. */
  hasFactor?: true
  /** Set if the policy signs in by the user's forwarded ticket. */
  forwarding?: Forwarding
  /** Set if it was opened by an approval. */
  approval?: SessionApproval
  /** The user's reason, if one was given. */
  reason?: Pick<Reason, 'comment' | 'ticket'>
  /** Why the session has to end, once a stop has been requested. */
  stopped?: string
  /** Why the client's input is held, by cause. */
  holds?: Map<HoldCause, Hold>
  /** Set when the session has lost its right: its proxy is reminded until it has ended. */
  isWithdrawn?: true
}

export class RunningSessions {
  readonly #sessions = new Map<Id, RunningSession>()
  /** Sessions that run on in brokers that this one has replaced. */
  readonly elsewhere = new Map<Id, ElsewhereSession>()
  /** Accounts that only one user at a time may have, claimed by sessions that are being opened. */
  readonly #claims = new Set<{ accountId: Id; userId: Id }>()

  add(session: RunningSession): void {
    this.#sessions.set(session.id, session)
  }

  /** @throws Error if a proxy names a session that does not run */
  get(id: Id): RunningSession {
    const session = this.#sessions.get(id)
    if (!session) throw new Error('there is no such session')
    return session
  }

  find(id: Id): RunningSession | undefined {
    return this.#sessions.get(id)
  }

  remove(id: Id): void {
    this.#sessions.get(id)?.forwarding?.close()
    this.#sessions.delete(id)
  }

  /** Counts this user's sessions. */
  ofUser(userId: Id): number {
    let count = 0
    for (const session of this.#sessions.values()) if (session.userId === userId) count++
    for (const session of this.elsewhere.values()) if (session.userId === userId) count++
    return count
  }

  get count(): number {
    return this.#sessions.size
  }

  /** Whether another user has a session with the account, or is opening one. */
  holdFor(accountId: Id, otherThan: Id): boolean {
    for (const claim of this.#claims) {
      if (claim.accountId === accountId && claim.userId !== otherThan) return true
    }
    for (const { target, userId } of this.#sessions.values()) {
      if (target.accountId === accountId && userId !== otherThan) return true
    }
    for (const session of this.elsewhere.values()) {
      if (session.accountId === accountId && session.userId !== otherThan) return true
    }
    return false
  }

  /**
   * Claims the account and returns a function that releases it. Returns undefined if another user holds it.
   */
  claim(accountId: Id, userId: Id): (() => void) | undefined {
    if (this.holdFor(accountId, userId)) return undefined
    const claim = { accountId, userId }
    this.#claims.add(claim)
    return () => this.#claims.delete(claim)
  }

  [Symbol.iterator](): Iterator<RunningSession> {
    return this.#sessions.values()
  }
}

/** Returns the store's row of a session that begins. */
export function recordOf(session: RunningSession, authorization: string): SessionRecord {
  const { id, begin, user, source, target, isRecorded, basis, approval, reason } = session
  const apiKey = apiKeyOf(basis)
  return {
    id,
    begin,
    user,
    sourceIp: source.address,
    protocol: target.protocol,
    subprotocols: [],
    account: target.accountName,
    domain: target.domainName,
    device: target.deviceName,
    service: target.serviceName,
    targetHost: target.host,
    authorization,
    isRecorded,
    bytesIn: 0,
    bytesOut: 0,
    ...(apiKey !== undefined && { apiKey }),
    ...(approval && { approval: approval.id }),
    ...(reason && reasonOf(reason)),
    ...(basis.classes && { accountingClasses: basis.classes }),
    ...(isRecorded && { recording: { state: 'open', size: 0, frames: 0, digest: '' } }),
  }
}

/** Returns what is there of a reason. */
function reasonOf({ comment, ticket }: Pick<Reason, 'comment' | 'ticket'>) {
  return { ...(comment !== '' && { comment }), ...(ticket !== '' && { ticket }) }
}

/**
 * Returns the fields of the target. The domain is absent without a stored account, the account until it is
 * named.
 */
export function targetFields(target: Target): EventFields {
  return {
    protocol: target.protocol,
    ...(target.accountName !== '' && { account: target.accountName }),
    ...(target.domainName !== '' && { domain: target.domainName }),
    device: target.deviceName,
    service: target.serviceName,
    target_host: target.host,
  }
}

/** Returns the fields that identify the session of an event. A proxy cannot overwrite them. */
export function sessionFields({ id, user, source, target, basis }: RunningSession): EventFields {
  const apiKey = apiKeyOf(basis)
  return {
    session: id,
    user,
    ...(apiKey !== undefined && { api_key: apiKey }),
    client_ip: source.address,
    client_port: source.port,
    ...targetFields(target),
  }
}

/** Omits user and client address: the actor that ended the session may be someone else. */
export function killFields(session: RunningSession): EventFields {
  const { client_ip: _ip, client_port: _port, user: _user, api_key: _key, ...fields } = sessionFields(session)
  return fields
}

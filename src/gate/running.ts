/** The sessions that run now, and what of them stands in each of their events. */

import type { Target } from '../access/targets.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Source } from '../contract/gate.ts'
import { apiKeyOf, type Basis } from '../identity/basis.ts'
import type { Id, SessionRecord } from '../model/objects.ts'
import type { Secret } from '../model/secret.ts'

export interface RunningSession {
  id: Id
  userId: Id
  user: string
  source: Source
  target: Target
  /** Milliseconds since the epoch. */
  begin: number
  isRecorded: boolean
  /** What those who watch it get to see is read from its recording. */
  recording?: { path: string; key: Secret }
  /** Its user is told when somebody watches. */
  tellsWatched: boolean
  /** Authorities for the target's host key, as the connection policy has them. */
  hostCaKeys: readonly string[]
  /** What its user's sign-in rests on. */
  basis: Basis
  /** Why it has to end, once somebody has said so. */
  stopped?: string
}

export class RunningSessions {
  readonly #sessions = new Map<Id, RunningSession>()
  /** Of sessions that are being opened with an account that one user at a time may have. */
  readonly #claims = new Set<{ accountId: Id; userId: Id }>()

  add(session: RunningSession): void {
    this.#sessions.set(session.id, session)
  }

  /** Throws when a proxy names a session that does not run. */
  get(id: Id): RunningSession {
    const session = this.#sessions.get(id)
    if (!session) throw new Error('there is no such session')
    return session
  }

  find(id: Id): RunningSession | undefined {
    return this.#sessions.get(id)
  }

  remove(id: Id): void {
    this.#sessions.delete(id)
  }

  /** How many of them are this user's. */
  ofUser(userId: Id): number {
    let count = 0
    for (const session of this.#sessions.values()) if (session.userId === userId) count++
    return count
  }

  get count(): number {
    return this.#sessions.size
  }

  /** Whether somebody else than this user has a session with the account, or is about to. */
  holdFor(accountId: Id, otherThan: Id): boolean {
    for (const claim of this.#claims) {
      if (claim.accountId === accountId && claim.userId !== otherThan) return true
    }
    for (const { target, userId } of this.#sessions.values()) {
      if (target.accountId === accountId && userId !== otherThan) return true
    }
    return false
  }

  /** Keeps others away from the account until what it answers is called; undefined: somebody else has it. */
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

/** The session at its beginning, for the store. */
export function recordOf(session: RunningSession, authorization: string): SessionRecord {
  const { id, begin, user, source, target, isRecorded, basis } = session
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
    ...(isRecorded && { recording: { state: 'open', size: 0, frames: 0, digest: '' } }),
  }
}

/** The fields that tell which target. There is no domain without a stored account, and no account before it is named. */
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

/** The fields that tell which session an event belongs to. A proxy cannot overwrite them. */
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

/** Whose the session is, and where from, says nothing of who ended it. */
export function killFields(session: RunningSession): EventFields {
  const { client_ip: _ip, client_port: _port, user: _user, api_key: _key, ...fields } = sessionFields(session)
  return fields
}

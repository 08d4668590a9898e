/** Opening a session: is it allowed now, and all that it needs. What is denied is in the audit with its reason. */
import { ulid } from 'ulid'
import { canonicalName, resolveTarget, type Target } from '../access/targets.ts'
import type { Audit, EventFields } from '../audit/catalogue.ts'
import { flawOfStanding } from '../identity/standing.ts'
import type { RecordingKeeper } from '../keeper/keeper.ts'
import { formatTarget, parseCanonical } from '../model/login.ts'
import { FACTORY_CONNECTION_POLICIES, type User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/credentials.ts'
import { credentialsFor } from './credentials.ts'
import { acceptedTypes } from './hostkeys.ts'
import { isLockedFor } from './lock.ts'
import type { OpenAnswer, OpenRequest, RecordingGrant, Source } from './messages.ts'
import {
  type RunningSession,
  type RunningSessions,
  recordOf,
  sessionFields,
  targetFields,
} from './running.ts'
import type { SignedIn } from './signins.ts'

/** Running sessions of one user, and of all: a connection costs memory, files and a place at the target. */
export const MAX_SESSIONS_PER_USER = 500
export const MAX_SESSIONS = 10_000

export interface OpeningOptions {
  store: Store
  vault: Vault
  audit: Audit
  recordings: RecordingKeeper
  running: RunningSessions
  /** Milliseconds since the epoch. */
  now: () => number
}

export class Opening {
  readonly #options: OpeningOptions
  #draining: string | undefined

  constructor(options: OpeningOptions) {
    this.#options = options
  }

  /** From now on no session is opened; `reason` is what a user reads. */
  drain(reason: string): void {
    this.#draining = reason
  }

  async open(signedIn: SignedIn, request: OpenRequest): Promise<OpenAnswer> {
    const { login, source, user } = signedIn
    const wanted = request.target === undefined ? login.target : parseCanonical(request.target)
    if (!wanted) return { result: 'denied', message: 'no target was named' }
    let where: EventFields = wanted
    const deny = async (reason: string, message = reason): Promise<OpenAnswer> => {
      await this.#options.audit.record('session.denied', {
        user,
        client_ip: source.address,
        client_port: source.port,
        protocol: request.protocol,
        ...where,
        reason,
      })
      return { result: 'denied', message }
    }
    if (this.#draining !== undefined) return await deny(this.#draining)
    // Rights may have gone since the sign-in.
    const person = await this.#options.store.users.find(signedIn.userId)
    if (!person || flawOfStanding(person, source.address, this.#options.now())) {
      return await deny(
        'the user may no longer sign in',
        `the target ${formatTarget(wanted)} does not exist, or you may not open it`,
      )
    }
    const rows = await this.#options.store.access.sessionTargets(signedIn.userId, { device: wanted.device })
    const resolution = resolveTarget(rows, wanted, request.protocol)
    if (resolution.result !== 'found') return await deny(resolution.message)
    where = targetFields(resolution.target)
    if (resolution.target.rights.length === 0) {
      return await deny(
        `the service ${resolution.target.serviceName} allows nothing that you have a right to`,
      )
    }
    return await this.#begin(person, source, resolution.target, deny)
  }

  async #begin(
    person: User,
    source: Source,
    target: Target,
    deny: (reason: string, message?: string) => Promise<OpenAnswer>,
  ): Promise<OpenAnswer> {
    const { store, vault, audit, recordings, running, now } = this.#options
    if (running.count >= MAX_SESSIONS) return await deny('too many sessions are open, try again later')
    if (running.ofUser(person.id) >= MAX_SESSIONS_PER_USER) {
      return await deny(`you have ${MAX_SESSIONS_PER_USER} sessions open: close one first`)
    }
    if (await isLockedFor(store, running, target.accountId, person.id, now())) {
      return await deny(
        'somebody else is using this account, and its checkout policy locks it: try again later',
      )
    }
    const policy = await store.connectionPolicies.find(
      target.connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[target.protocol],
    )
    if (!policy) return await deny('the connection policy of the service is gone')
    const credentials = await credentialsFor(vault, target.accountId)
    if (credentials.length === 0) return await deny(`no credential is stored for ${canonicalName(target)}`)
    const session: RunningSession = {
      id: ulid(),
      userId: person.id,
      user: person.userName,
      source,
      target,
      begin: now(),
      isRecorded: target.isRecorded,
    }
    const canonical = canonicalName(target)
    let recording: RecordingGrant | undefined
    if (target.isRecorded) {
      try {
        recording = await recordings.prepare(session.id, session.begin, {
          user: session.user,
          client: source.address,
          target: canonical,
          host: target.host,
          protocol: target.protocol,
        })
      } catch (error) {
        const reason = `the recording cannot begin: ${error instanceof Error ? error.message : String(error)}`
        await audit.record('recording.failed', { ...sessionFields(session), reason })
        return await deny(
          reason,
          'the session cannot be recorded, so it is not opened: tell an administrator',
        )
      }
    }
    const authorization = target.authorizationNames.join(', ')
    await audit.record('session.open', { ...sessionFields(session), authorization })
    try {
      await store.sessions.create(recordOf(session, authorization))
    } catch (error) {
      await audit.record('session.close', {
        ...sessionFields(session),
        result: 'failure',
        reason: 'the session could not be stored',
      })
      throw error
    }
    running.add(session)
    return {
      result: 'opened',
      session: {
        id: session.id,
        user: session.user,
        target: {
          canonical,
          host: target.host,
          port: target.port,
          login: target.accountLogin,
          device: target.deviceName,
          service: target.serviceName,
        },
        credentials,
        hostKeyTypes: await acceptedTypes(store.hostKeys, target.serviceId),
        rights: target.rights,
        options: policy.ssh,
        ...(recording && { recording }),
      },
    }
  }
}

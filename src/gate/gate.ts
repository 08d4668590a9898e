/**
 * The gate: the only way in. Proxies ask here, in plain data (messages.ts), and everything that a session needs
 * comes together: identity, rights, credential, recording, audit. Fail closed: what cannot be audited or
 * recorded does not happen.
 */
import { randomBytes } from 'node:crypto'
import { ulid } from 'ulid'
import { canonicalName, resolveTarget, type Target, targetsOf } from '../access/targets.ts'
import type { Audit, EventCode, EventFields } from '../audit/catalogue.ts'
import type { Identities } from '../identity/chain.ts'
import { LOCKOUT_LIMITS } from '../identity/lockout.ts'
import { flawOfStanding } from '../identity/standing.ts'
import type { RecordingKeeper } from '../keeper/keeper.ts'
import { formatTarget, type Login, parseCanonical, parseLogin } from '../model/login.ts'
import type { Id, User } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/credentials.ts'
import { credentialsFor } from './credentials.ts'
import { HostKeyJudge } from './hostkeys.ts'
import { isLockedFor } from './lock.ts'
import type {
  AuthenticateAnswer,
  AuthenticateRequest,
  CloseRequest,
  DeniedRequest,
  EventRequest,
  Gate,
  GateNotice,
  HostKeyAnswer,
  HostKeyRequest,
  OpenAnswer,
  OpenRequest,
  RecordingGrant,
  SignRequest,
  Source,
  TargetsAnswer,
  TargetsRequest,
} from './messages.ts'
import { MAX_TARGETS } from './messages.ts'
import { Review } from './review.ts'
import {
  killFields,
  type RunningSession,
  RunningSessions,
  recordOf,
  sessionFields,
  targetFields,
} from './running.ts'

export interface GateOptions {
  store: Store
  identities: Identities
  vault: Vault
  audit: Audit
  recordings: RecordingKeeper
  /** Milliseconds since the epoch. */
  now: () => number
}

/** What proxies may report; the gate itself tells the rest. */
const PROXY_EVENTS: ReadonlySet<EventCode> = new Set([
  'channel.open',
  'channel.denied',
  'channel.unrecorded',
  'command',
  'file.transfer',
  'file.denied',
] as const)

/** Running sessions of one user, and of all: a connection costs memory, files and a place at the target. */
export const MAX_SESSIONS_PER_USER = 500
export const MAX_SESSIONS = 10_000

/** Somebody who has signed in on a connection that is still there. */
interface SignedIn {
  userId: string
  user: string
  login: Login
  source: Source
}

export class BrokerGate implements Gate {
  readonly #options: GateOptions
  readonly #hostKeys: HostKeyJudge
  readonly #signedIn = new Map<string, SignedIn>()
  readonly #running = new RunningSessions()
  readonly #review: Review
  readonly #listeners: ((notice: GateNotice) => void)[] = []
  #draining: string | undefined

  constructor(options: GateOptions) {
    this.#options = options
    this.#hostKeys = new HostKeyJudge(options.store.hostKeys, options.audit, options.now)
    this.#review = new Review({
      ...options,
      running: this.#running,
      stop: (session, reason) => this.#end(session, reason),
    })
  }

  async authenticate({ protocol, source, login, proof }: AuthenticateRequest): Promise<AuthenticateAnswer> {
    const { identities, audit } = this.#options
    const parsed = parseLogin(login)
    const fields = { client_ip: source.address, client_port: source.port, protocol, method: proof.method }
    if ('malformed' in parsed) {
      await audit.record('auth.failure', { ...fields, reason: 'malformed login string' })
      return { result: 'malformed', message: parsed.malformed }
    }
    if (proof.method === 'none') return { result: 'rejected' }
    const outcome = await identities.authenticate({
      user: parsed.user,
      login,
      source: source.address,
      proof,
    })
    if (outcome.result === 'key_acceptable') return { result: 'key_acceptable' }
    if (outcome.result === 'rejected') {
      // An offer of a key that is not the user's is no attempt: agents offer all they hold.
      if (proof.method !== 'publickey' || proof.signed) {
        await audit.record('auth.failure', { ...fields, user: parsed.user, reason: outcome.reason })
        if (outcome.locks) {
          await audit.record('auth.locked', {
            ...fields,
            user: parsed.user,
            reason: outcome.reason,
            duration: LOCKOUT_LIMITS.lockMs,
          })
        }
      }
      return { result: 'rejected' }
    }
    const { user } = outcome
    await audit.record('auth.success', { ...fields, user: user.userName, profile: user.profile })
    const token = randomBytes(16).toString('base64url')
    this.#signedIn.set(token, { userId: user.id, user: user.userName, login: parsed, source })
    return {
      result: 'accepted',
      identity: {
        token,
        user: user.userName,
        displayName: user.displayName,
        hasTarget: parsed.target !== undefined,
      },
    }
  }

  async targets({ identity, protocol }: TargetsRequest): Promise<TargetsAnswer> {
    const { userId } = this.#identity(identity)
    const targets = targetsOf(await this.#options.store.access.sessionTargets(userId), protocol).filter(
      (target) => target.rights.length > 0,
    )
    return {
      targets: targets
        .slice(0, MAX_TARGETS)
        .map((target) => ({ target: canonicalName(target), description: target.deviceDescription })),
      total: targets.length,
    }
  }

  async open(request: OpenRequest): Promise<OpenAnswer> {
    const signedIn = this.#identity(request.identity)
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
    const { store, vault, audit, recordings, now } = this.#options
    if (this.#running.count >= MAX_SESSIONS) return await deny('too many sessions are open, try again later')
    if (this.#running.ofUser(person.id) >= MAX_SESSIONS_PER_USER) {
      return await deny(`you have ${MAX_SESSIONS_PER_USER} sessions open: close one first`)
    }
    if (await isLockedFor(store, this.#running, target.accountId, person.id, now())) {
      return await deny(
        'somebody else is using this account, and its checkout policy locks it: try again later',
      )
    }
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
    this.#running.add(session)
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
        rights: target.rights,
        ...(recording && { recording }),
      },
    }
  }

  async hostKey({ session, key }: HostKeyRequest): Promise<HostKeyAnswer> {
    const running = this.#running.get(session)
    // A right that went while the session was being opened.
    const flaw = await this.#review.flawOf(running)
    if (flaw !== undefined) await this.#end(running, flaw)
    // Ended before its proxy could hear of it: no credential goes out any more.
    if (running.stopped !== undefined) return { result: 'refused', message: running.stopped }
    return await this.#hostKeys.judge(running, key)
  }

  async event({ session, code, fields }: EventRequest): Promise<void> {
    const running = this.#running.get(session)
    if (!PROXY_EVENTS.has(code)) throw new Error(`a proxy does not report ${code}`)
    await this.#options.audit.record(code, { ...fields, ...sessionFields(running) })
  }

  async denied({ identity, protocol, what, reason }: DeniedRequest): Promise<void> {
    const { user, source } = this.#identity(identity)
    const client = { client_ip: source.address, client_port: source.port }
    await this.#options.audit.record('channel.denied', {
      user,
      ...client,
      protocol,
      subprotocol: what,
      reason,
    })
  }

  async sign({ session, statement }: SignRequest): Promise<Uint8Array> {
    this.#running.get(session)
    return await this.#options.recordings.sign(session, statement)
  }

  async close(request: CloseRequest): Promise<void> {
    const { store, audit, now } = this.#options
    const session = this.#running.get(request.session)
    const end = now()
    // The audit first: what a crash leaves in between is closed once more at the next start, and not never.
    await this.#auditRecording(session, request)
    await audit.record('session.close', {
      ...sessionFields(session),
      subprotocol: request.rightsUsed.join(' '),
      result: request.result,
      ...(request.reason !== undefined && { reason: request.reason }),
      duration: end - session.begin,
      bytes_in: request.bytesIn,
      bytes_out: request.bytesOut,
    })
    await store.sessions.update(session.id, {
      end,
      result: request.result,
      ...(request.reason !== undefined && { reason: request.reason }),
      subprotocols: request.rightsUsed,
      bytesIn: request.bytesIn,
      bytesOut: request.bytesOut,
      ...(request.recording && { recording: request.recording }),
    })
    this.#running.remove(session.id)
  }

  async #auditRecording(session: RunningSession, { recording, reason }: CloseRequest): Promise<void> {
    const { audit } = this.#options
    if (!session.isRecorded) return
    const fields: EventFields = sessionFields(session)
    if (recording?.state === 'sealed') {
      await audit.record('recording.sealed', { ...fields, size: recording.size, digest: recording.digest })
    } else {
      await audit.record('recording.failed', {
        ...fields,
        reason: reason ?? 'the recording could not be written',
      })
    }
  }

  async leave({ identity }: { identity: string }): Promise<void> {
    this.#signedIn.delete(identity)
  }

  onNotice(listener: (notice: GateNotice) => void): void {
    this.#listeners.push(listener)
  }

  /** Ends a running session; `by` asked for it. False: there is none of that id. */
  async kill(id: string, reason: string, by: string): Promise<boolean> {
    const session = this.#running.find(id)
    if (!session) return false
    await this.#options.audit.record('session.kill', { ...killFields(session), user: by, reason })
    session.stopped = `ended by ${by}: ${reason}`
    this.#notify({ type: 'stop', session: id, reason: session.stopped })
    return true
  }

  /** Ends the sessions that may not go on after what was changed; resolves when their proxies were told. */
  review(): Promise<void> {
    return this.#review.run()
  }

  /** Whether somebody else than this user has a session with the account. */
  holdFor(accountId: Id, otherThan: Id): boolean {
    return this.#running.holdFor(accountId, otherThan)
  }

  /** Ends a session that has lost its right, whatever the audit says; who was told already is told again. */
  async #end(session: RunningSession, reason: string): Promise<void> {
    const isNew = session.stopped === undefined
    session.stopped ??= reason
    this.#notify({ type: 'stop', session: session.id, reason: session.stopped })
    if (isNew) await this.#options.audit.record('session.kill', { ...killFields(session), reason })
  }

  /** From now on no session is opened; `reason` is what a user reads. */
  drain(reason: string): void {
    this.#draining = reason
  }

  get running(): number {
    return this.#running.count
  }

  #notify(notice: GateNotice): void {
    for (const listener of this.#listeners) listener(notice)
  }

  #identity(token: string): SignedIn {
    const signedIn = this.#signedIn.get(token)
    if (!signedIn) throw new Error('this identity is no longer signed in')
    return signedIn
  }
}

/**
 * The gate: the only way in. Proxies ask here, in plain data (messages.ts), and everything that a session needs
 * comes together: identity, rights, credential, recording, audit. Fail closed: what cannot be audited or
 * recorded does not happen.
 */
import { canonicalName, targetsOf } from '../access/targets.ts'
import type { Audit, EventCode } from '../audit/catalogue.ts'
import type { Identities } from '../identity/chain.ts'
import type { RecordingKeeper } from '../keeper/keeper.ts'
import type { Id } from '../model/objects.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/credentials.ts'
import { accountFor } from './closing.ts'
import { HostKeyJudge } from './hostkeys.ts'
import type { HostTrust } from './hosttrust.ts'
import {
  type GuestMode,
  type Invitation,
  Invitations,
  type InviteAnswer,
  type InviteRequest,
} from './invitations.ts'
import { LiveSessions, type Watching } from './live.ts'
import type { LiveDrawer, Watcher } from './live-session.ts'
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
  LiveAnswer,
  LiveRequest,
  OpenAnswer,
  OpenRequest,
  SignRequest,
  TargetsAnswer,
  TargetsRequest,
} from './messages.ts'
import { MAX_TARGETS } from './messages.ts'
import { Opening } from './opening.ts'
import { Review } from './review.ts'
import { killFields, type RunningSession, RunningSessions, sessionFields } from './running.ts'
import { SignIns } from './signins.ts'
import { TicketOffice } from './ticket-office.ts'
import { Tickets } from './tickets.ts'

export interface GateOptions {
  store: Store
  identities: Identities
  vault: Vault
  audit: Audit
  recordings: RecordingKeeper
  /** A session is over and accounted for, and its recording closed. */
  onRecorded?: (session: Id) => void
  /** Draws what those who watch see first. */
  drawer: LiveDrawer
  /** Milliseconds since the epoch. */
  now: () => number
}

/** What proxies may report; the gate itself tells the rest. */
const PROXY_EVENTS: ReadonlySet<EventCode> = new Set([
  'session.redirect',
  'channel.open',
  'channel.denied',
  'channel.unrecorded',
  'command',
  'file.transfer',
  'clipboard',
  'file.denied',
  // By a rule of the session, which the proxy applies.
  'session.kill',
] as const)

export class BrokerGate implements Gate {
  readonly #options: GateOptions
  readonly #signIns: SignIns
  readonly #opening: Opening
  readonly #hostKeys: HostKeyJudge
  readonly #running = new RunningSessions()
  readonly #review: Review
  readonly #live: LiveSessions
  readonly #invitations: Invitations
  readonly #listeners: ((notice: GateNotice) => void)[] = []
  /** Where one-time tickets are had. */
  readonly tickets: TicketOffice

  constructor(options: GateOptions) {
    this.#options = options
    const { audit, now } = options
    const tickets = new Tickets()
    this.tickets = new TicketOffice({ ...options, tickets })
    this.#invitations = new Invitations({ audit, now, notify: (notice) => this.#notify(notice) })
    this.#signIns = new SignIns({ ...options, tickets, invitations: this.#invitations })
    this.#live = new LiveSessions({ drawer: options.drawer, notify: (notice) => this.#notify(notice) })
    this.#opening = new Opening({ ...options, running: this.#running })
    this.#hostKeys = new HostKeyJudge(options.store.hostKeys, options.audit, options.now)
    this.#review = new Review({
      ...options,
      running: this.#running,
      stop: (session, reason) => this.#end(session, reason),
    })
  }

  authenticate(request: AuthenticateRequest): Promise<AuthenticateAnswer> {
    return this.#signIns.authenticate(request)
  }

  async targets({ identity, protocol }: TargetsRequest): Promise<TargetsAnswer> {
    const { userId, isBound } = this.#signIns.get(identity)
    // who came with a ticket has chosen
    const rows = isBound ? [] : await this.#options.store.access.sessionTargets(userId)
    const targets = targetsOf(rows, protocol).filter((target) => target.rights.length > 0)
    return {
      targets: targets
        .slice(0, MAX_TARGETS)
        .map((target) => ({ target: canonicalName(target), description: target.deviceDescription })),
      total: targets.length,
    }
  }

  async open(request: OpenRequest): Promise<OpenAnswer> {
    return await this.#opening.open(this.#signIns.get(request.identity), request)
  }

  async hostKey({ session, key, kind }: HostKeyRequest): Promise<HostKeyAnswer> {
    const running = this.#running.get(session)
    // A right that went while the session was being opened.
    const flaw = await this.#review.flawOf(running)
    if (flaw !== undefined) await this.#end(running, flaw)
    // Ended before its proxy could hear of it: no credential goes out any more.
    if (running.stopped !== undefined) return { result: 'refused', message: running.stopped }
    return await this.#hostKeys.judge(running, key, kind)
  }

  async event({ session, code, fields }: EventRequest): Promise<void> {
    const running = this.#running.get(session)
    if (!PROXY_EVENTS.has(code)) throw new Error(`a proxy does not report ${code}`)
    if (code === 'session.kill') {
      running.stopped ??= String(fields.reason)
      await this.#options.audit.record(code, { ...fields, ...killFields(running) })
    } else {
      await this.#options.audit.record(code, { ...fields, ...sessionFields(running) })
    }
  }

  async denied({ identity, protocol, what, reason }: DeniedRequest): Promise<void> {
    const { user, source } = this.#signIns.get(identity)
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
    const session = this.#running.get(request.session)
    await accountFor(session, request, this.#options.now(), this.#options)
    this.#running.remove(session.id)
    this.#options.recordings.over(session.id)
    this.#invitations.over(session.id)
    if (session.isRecorded) this.#options.onRecorded?.(session.id)
    this.#live.over(session.id, request)
    session.recording?.key.wipe()
  }

  async live(request: LiveRequest): Promise<LiveAnswer> {
    return this.#live.take(request)
  }

  async leave({ identity }: { identity: string }): Promise<void> {
    this.#signIns.forget(identity)
    await this.#invitations.leave(identity)
  }

  onNotice(listener: (notice: GateNotice) => void): void {
    this.#listeners.push(listener)
  }

  /** Why nobody can watch the session now; undefined: somebody can. */
  watchRefusal(id: string): Exclude<Watching['result'], 'watching'> | undefined {
    const session = this.#running.find(id)
    return session ? this.#live.refusal(session) : 'not_running'
  }

  /** Shows a running session to somebody until the answer's `stop`, or until the watcher is told its end. */
  watch(id: string, watcher: Watcher): Watching {
    const session = this.#running.find(id)
    if (!session) return { result: 'not_running' }
    return this.#live.watch(session, watcher)
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

  /** Lets somebody into a running session; the password is for this once. */
  invite(id: string, request: InviteRequest): InviteAnswer {
    const session = this.#running.find(id)
    if (!session || session.stopped !== undefined) return { result: 'not_running' }
    if (session.target.protocol !== 'VNC' || session.target.isStrict) return { result: 'not_shareable' }
    const invited = this.#invitations.invite(session, request)
    return invited ? { result: 'invited', ...invited } : { result: 'too_many' }
  }

  /** Of a session: those that wait, and those whose guest is in. */
  invitations(id: string): Invitation[] {
    return this.#invitations.ofSession(id)
  }

  /** What the guest may do from now on; `by` has said so. */
  setGuestMode(invitation: string, mode: GuestMode, by: string): void {
    this.#invitations.setMode(invitation, mode, by)
  }

  /** The invitation is no longer good, and its guest has to leave. */
  withdrawInvitation(invitation: string, reason: string, by?: string): void {
    this.#invitations.withdraw(invitation, reason, by)
  }

  /** The user whose session it is; undefined: it does not run. */
  ownerOf(id: string): string | undefined {
    return this.#running.find(id)?.userId
  }

  /**
   * Ends the sessions that may not go on after what was changed, and takes back such tickets; resolves when the proxies
   * were told.
   */
  async review(): Promise<void> {
    await Promise.all([this.#review.run(), this.tickets.review()])
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
    this.#opening.drain(reason)
  }

  get running(): number {
    return this.#running.count
  }

  /** Whom the broker believes about host keys, from now on. */
  set hostTrust(trust: HostTrust) {
    this.#hostKeys.trust = trust
  }

  #notify(notice: GateNotice): void {
    for (const listener of this.#listeners) listener(notice)
  }
}

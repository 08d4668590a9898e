/**
 * The gate: the only way in. Proxies send their requests here as plain data (contract/gate.ts), and all that
 * a session needs comes together: identity, rights, credential, recording, audit. It fails closed: an action
 * that cannot be audited or recorded does not happen.
 */

import type { Appended } from '../../recordings/container/recording-file.ts'
import { canonicalName, targetsOf } from '../access/targets.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type {
  AppendRecordingRequest,
  AskCommandAnswer,
  AskCommandRequest,
  AuthenticateAnswer,
  AuthenticateRequest,
  BeginRecordingRequest,
  CloseRequest,
  CountedRequest,
  DeniedRequest,
  DialAnswer,
  EventRequest,
  Gate,
  GateNotice,
  HostKeyAnswer,
  HostKeyRequest,
  LiveAnswer,
  LiveRequest,
  OpenAnswer,
  OpenRequest,
  ProxyEventCode,
  ServiceTicketAnswer,
  SignRequest,
  TargetGssapiAnswer,
  TargetGssapiRequest,
  TargetsAnswer,
  TargetsRequest,
} from '../contract/gate.ts'
import { MAX_TARGETS } from '../contract/gate.ts'
import type { Basis } from '../identity/basis.ts'
import type { Identities } from '../identity/chain.ts'
import type { SshTickets } from '../identity/ssh-tickets.ts'
import type { Id } from '../model/objects.ts'
import type { EndedRecording } from '../recording-service/indexing/ended.ts'
import { recoverAbandoned } from '../recording-service/recover.ts'
import type { RecordingService } from '../recording-service/service.ts'
import { keepDialled } from '../sockets/dialled.ts'
import { connectPrivileged } from '../sockets/privileged-port.ts'
import type { Store } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { ApprovalEnds } from './approval-ends.ts'
import { OVER } from './approval-look.ts'
import { Approvals } from './approvals.ts'
import { Arrears } from './arrears.ts'
import { Asks } from './asks.ts'
import { whileThere } from './away.ts'
import { CheckoutReview } from './checkout-review.ts'
import { accountFor, accountOf, endedRecording } from './closing.ts'
import { Denial } from './denial.ts'
import type { ElsewhereSession, ReleaseAnswer } from './elsewhere.ts'
import { FactorDesk } from './factor-desk.ts'
import { FourEyes } from './four-eyes.ts'
import { type Hold, holdOf, type OrderedBy } from './holds.ts'
import { HostKeyJudge } from './host-keys.ts'
import type { HostTrust } from './host-trust.ts'
import {
  type GuestMode,
  type Invitation,
  Invitations,
  type InviteAnswer,
  type InviteRequest,
} from './invitations.ts'
import { LiveSessions, type Watching } from './live.ts'
import type { LiveDrawer, Watcher } from './live-session.ts'
import { MenuHours } from './menu-hours.ts'
import { type Counted, Octets } from './octets.ts'
import { Opening } from './opening.ts'
import { proxyFields } from './proxy-events.ts'
import { Review } from './review.ts'
import { killFields, type RunningSession, RunningSessions, sessionFields } from './running.ts'
import type { SecretChanges } from './secret-changes.ts'
import { SessionHours } from './session-hours.ts'
import { whoFields } from './sign-in-fields.ts'
import { SignIns } from './sign-ins.ts'
import { Steps } from './steps.ts'
import { Suspensions } from './suspensions.ts'
import { TargetTickets } from './target-tickets.ts'
import { TicketOffice } from './ticket-office.ts'
import { Tickets } from './tickets.ts'
import { Waits } from './waits.ts'
import { type Telling, Withdrawals } from './withdrawals.ts'

export interface GateOptions {
  store: Store
  identities: Identities
  /** Tickets of Kerberos over SSH; absent if none are taken. */
  sshTickets?: SshTickets
  vault: Vault
  audit: Audit
  recordings: RecordingService
  /**
   * Called when a session has ended, its end is written, and its recording, if it has one, is closed. `ended` is
   * absent if the recording was not closed in order; its key is valid during the call only.
   */
  onClosed?: (session: Id, isRecorded: boolean, ended?: EndedRecording) => void
  /** Called once for an invitation whose password does not open. */
  onUnreadable?: (invitation: Id) => void
  /** Changes of secrets; absent if there are none. */
  secretChanges?: SecretChanges
  /** Draws the keyframes for watchers. */
  drawer: LiveDrawer
  /** Milliseconds since the epoch. */
  now: () => number
  /** Absent if nothing is measured. */
  steps?: Steps
}

/** Milliseconds in which a target has to accept a connection. */
const DIAL_MS = 15_000

export class BrokerGate implements Gate {
  readonly #options: GateOptions
  readonly #steps: Steps
  readonly #signIns: SignIns
  readonly #opening: Opening
  readonly #hostKeys: HostKeyJudge
  readonly #running = new RunningSessions()
  readonly #review: Review
  readonly #live: LiveSessions
  readonly #invitations: Invitations
  readonly #suspensions: Suspensions
  readonly #fourEyes: FourEyes
  readonly #octets: Octets
  readonly #asks: Asks
  readonly #arrears: Arrears
  readonly #targetTickets: TargetTickets
  readonly #checkouts: CheckoutReview
  readonly #menuHours: MenuHours
  readonly #listeners = new Set<(notice: GateNotice) => void>()
  readonly #waits: Waits
  readonly #approvalEnds = new ApprovalEnds()
  /** Asks approvers, and takes their answers. */
  readonly approvals: Approvals
  /** Hands out one-time tickets. */
  readonly tickets: TicketOffice

  constructor(options: GateOptions) {
    this.#options = options
    this.#steps = options.steps ?? new Steps({ monotonic: () => 0, onStep: () => undefined })
    const { audit, now, onUnreadable, store, vault } = options
    this.#arrears = new Arrears(store.reach)
    this.#targetTickets = new TargetTickets(options)
    const notify = (notice: GateNotice) => this.#notify(notice)
    this.approvals = new Approvals({ store, vault, audit, now })
    this.#waits = new Waits({
      approvals: this.approvals,
      store: store.approvals,
      notify,
      now,
    })
    this.#checkouts = new CheckoutReview(options)
    this.#review = new Review({
      ...options,
      running: this.#running,
      stop: (session, reason) => this.#stop(session, reason),
      others: async (...reviewed) => {
        await this.#signIns.review(...reviewed)
        await this.#menuHours.review(reviewed[2], reviewed[1])
        await this.tickets.review(...reviewed)
        await this.#invitations.review(...reviewed)
        await this.#waits.review(reviewed[2])
        await this.#checkouts.review(...reviewed)
        await this.#asks.review(reviewed[2])
      },
      holders: () => this.#checkouts.holders(),
      hours: new SessionHours({ now, notify }),
      bases: () => this.#bases(),
    })
    this.#menuHours = new MenuHours({
      store,
      notify,
      watch: ({ basis }) => this.#review.watch(basis),
      now,
    })
    const grounds = () => this.#review.grounds()
    const tickets = new Tickets(store.tickets, vault)
    const watch = (basis: Basis) => this.#review.watch(basis)
    this.tickets = new TicketOffice({ ...options, tickets, grounds, watch })
    this.#invitations = new Invitations({
      stored: store.invitations,
      vault,
      runsElsewhere: (session) => this.#running.elsewhere.has(session),
      ...(onUnreadable && { onUnreadable }),
      audit,
      now,
      notify,
      grounds,
      watch,
    })
    const desk = new FactorDesk(options)
    this.#signIns = new SignIns({
      ...options,
      factorAhead: (...asked) => desk.ahead(...asked),
      tickets,
      invitations: this.#invitations,
      grounds,
      running: () => this.#running,
      reasonAhead: (user, target) => this.#opening.reasonAhead(user, target),
      onWithdrawn: (identity, reason) => notify({ type: 'leave', identity, reason }),
    })
    this.#octets = new Octets(notify)
    this.#suspensions = new Suspensions({ audit, notify, now })
    this.#asks = new Asks({ store, approvals: this.approvals, notify, now })
    this.#fourEyes = new FourEyes({
      suspensions: this.#suspensions,
      end: (session, reason) => void this.#end(session, reason).catch(() => undefined),
    })
    this.#live = new LiveSessions({
      drawer: options.drawer,
      notify,
      onWatched: (session, watcher) => this.#fourEyes.onWatched(session, watcher),
      onLeft: (session, watcher) => this.#fourEyes.onLeft(session, watcher),
    })
    this.#opening = new Opening({
      ...options,
      steps: this.#steps,
      factorDesk: desk,
      running: this.#running,
      grounds,
      approvals: this.approvals,
      waits: this.#waits,
      isSignedIn: (token) => this.#signIns.has(token),
    })
    this.#hostKeys = new HostKeyJudge(options.store.hostKeys, options.audit, options.now)
  }

  authenticate(request: AuthenticateRequest): Promise<AuthenticateAnswer> {
    const { reach } = this.#options.store
    const judge = () =>
      whileThere(
        reach,
        () => this.#signIns.authenticate(request),
        (message) => ({ result: 'unavailable' as const, message }),
      )
    const { protocol, source } = request
    return this.#steps.time<AuthenticateAnswer>('sign_in', judge, (answer) => ({
      result: answer?.result ?? 'failed',
      protocol,
      source,
      ...(answer?.result === 'accepted' && { identity: answer.identity.token }),
    }))
  }

  async targets({ identity, protocol }: TargetsRequest): Promise<TargetsAnswer> {
    const signedIn = this.#signIns.get(identity, protocol)
    const { userId, isBound } = signedIn
    // The ticket names the target already.
    const { now, store } = this.#options
    const rows = isBound ? [] : await store.access.sessionTargets(userId, now())
    const targets = targetsOf(rows, protocol).filter((target) => target.rights.length > 0)
    this.#menuHours.shown(identity, signedIn, rows)
    if (targets.length > 0 && !signedIn.hasTargets) {
      signedIn.hasTargets = true
      // They may have gone since they were read.
      this.#review.watch(signedIn.basis)
    }
    return {
      targets: targets
        .slice(0, MAX_TARGETS)
        .map((target) => ({ target: canonicalName(target), description: target.deviceDescription })),
      total: targets.length,
    }
  }

  /** Calls `onRunning` with the id of an opened session before any notice about it is sent. */
  open(request: OpenRequest, onRunning?: (session: Id) => void): Promise<OpenAnswer> {
    const { store } = this.#options
    const open = () =>
      whileThere(
        store.reach,
        () => this.#open(request, onRunning),
        (message) => ({ result: 'denied' as const, message }),
      )
    const { protocol, source, identity } = request
    return this.#steps.time<OpenAnswer>('authorization', open, (answer) => ({
      result: answer?.result ?? 'failed',
      ...{ protocol, source, identity },
      ...(answer?.result === 'opened' && { session: answer.session.id }),
    }))
  }

  async #open(request: OpenRequest, onRunning?: (session: Id) => void): Promise<OpenAnswer> {
    const signedIn = this.#signIns.get(request.identity, request.protocol)
    const answer = await this.#opening.open(signedIn, request, onRunning)
    if (answer.result !== 'opened') return answer
    this.#menuHours.forget(request.identity)
    const running = this.#running.get(answer.session.id)
    this.#steps.granted(running.id, request.protocol)
    this.#fourEyes.begin(running)
    this.#approvalEnds.add(running)
    // Covers rights that were removed while the session was being opened, before a review could see it.
    const flaw = await this.#review.flawOf(running).catch(async (error: unknown) => {
      // Its proxy gets no session that it could close.
      const reason = 'its rights could not be looked up'
      await this.close({
        session: running.id,
        result: 'failure',
        reason,
        rightsUsed: [],
        bytesIn: 0,
        bytesOut: 0,
      }).catch(() => this.abandon(running.id, reason))
      throw error
    })
    if (flaw === undefined) return answer
    await this.#end(running, flaw)
    return { ...answer, session: { ...answer.session, credentials: [] } }
  }

  hostKey(request: HostKeyRequest): Promise<HostKeyAnswer> {
    return whileThere(
      this.#options.store.reach,
      () => this.#hostKey(request),
      (message) => ({ result: 'refused', message }),
    )
  }

  async #hostKey({ session, key, kind }: HostKeyRequest): Promise<HostKeyAnswer> {
    const running = this.#running.get(session)
    this.#steps.reached(session)
    // Covers rights that were removed while the session was being opened.
    const flaw = await this.#review.flawOf(running)
    if (flaw !== undefined) await this.#end(running, flaw)
    // The session ended before its proxy got the notice: release no credential.
    if (running.stopped !== undefined) return { result: 'refused', message: running.stopped }
    const unwatched = running.holds?.get('unwatched')
    // Honest proxies wait: one that was taken over gets no credential of SSH before a watcher is there.
    if (unwatched) return { result: 'refused', message: unwatched.reason }
    const { handOut } = running
    if (!handOut) return await this.#hostKeys.judge(running, key, kind)
    try {
      handOut.claim()
    } catch (error) {
      if (!(error instanceof Denial)) throw error
      return { result: 'refused', message: error.message }
    }
    let isHandedOut = false
    try {
      const answer = await this.#hostKeys.judge(running, key, kind)
      if (answer.result !== 'accepted') return answer
      // It may have been ended meanwhile.
      if (running.stopped !== undefined) return { result: 'refused', message: running.stopped }
      isHandedOut = true
      delete running.handOut
      return { ...answer, credentials: handOut.take() }
    } finally {
      if (!isHandedOut) handOut.release()
    }
  }

  serviceTicket({ session }: { session: string }): Promise<ServiceTicketAnswer> {
    return whileThere(
      this.#options.store.reach,
      () => this.#serviceTicket(this.#running.get(session)),
      (message) => ({ result: 'failed', message }),
    )
  }

  async #serviceTicket(running: RunningSession): Promise<ServiceTicketAnswer> {
    if (!running.hasKerberos) throw new Error('this session has no Kerberos')
    const flaw = await this.#review.flawOf(running)
    if (flaw !== undefined) await this.#end(running, flaw)
    if (running.stopped !== undefined) return { result: 'failed', message: running.stopped, isFinal: true }
    const unwatched = running.holds?.get('unwatched')
    if (unwatched) return { result: 'failed', message: unwatched.reason, isFinal: true }
    return await this.#targetTickets.issue(running)
  }

  async targetGssapi({ session, ...step }: TargetGssapiRequest): Promise<TargetGssapiAnswer> {
    const { forwarding, stopped } = this.#running.get(session)
    if (!forwarding) throw new Error('this target is not reached by a forwarded ticket')
    if (stopped === undefined) return await forwarding.step(step)
    forwarding.close()
    return { result: 'unusable', message: stopped }
  }

  async dial({ session }: { session: string }): Promise<DialAnswer> {
    const running = this.#running.get(session)
    if (!running.usesPrivilegedPort) throw new Error('this target is not reached from a privileged port')
    if (running.stopped !== undefined) return { result: 'failed', message: running.stopped }
    const { host, port } = running.target
    try {
      const handle = await connectPrivileged(host, port, DIAL_MS)
      return { result: 'connected', connection: keepDialled(handle) }
    } catch (error) {
      const { message, code } = error as NodeJS.ErrnoException
      return { result: 'failed', message, ...(code !== undefined && { code }) }
    }
  }

  async event<C extends ProxyEventCode>({ session, code, fields }: EventRequest<C>): Promise<void> {
    const running = this.#running.get(session)
    if (code === 'channel.open') this.#steps.reached(session)
    let said: EventFields
    try {
      said = proxyFields(code, fields)
    } catch (error) {
      // Nothing else that this proxy reports of the session can be trusted.
      await this.#end(running, `the session's proxy was refused an event: ${(error as Error).message}`)
      throw error
    }
    if (code === 'session.kill') {
      running.stopped ??= said.reason === undefined ? 'a rule of the session ended it' : String(said.reason)
      await this.#options.audit.record(code, { ...said, ...killFields(running) })
    } else {
      await this.#options.audit.record(code, { ...said, ...sessionFields(running) })
    }
  }

  async denied({ identity, protocol, what, reason }: DeniedRequest): Promise<void> {
    await this.#options.audit.record('channel.denied', {
      ...whoFields(this.#signIns.get(identity, protocol)),
      protocol,
      subprotocol: what,
      reason,
    })
  }

  async sign({ session, statement }: SignRequest): Promise<Uint8Array> {
    this.#running.get(session)
    return await this.#options.recordings.sign(session, statement)
  }

  async beginRecording({ session, parts }: BeginRecordingRequest): Promise<void> {
    const { recordings } = this.#options
    await this.#steps.time(
      'recording_open',
      async () => {
        await recordings.begin(session, parts)
        return 'opened'
      },
      (result = 'failed') => ({ result, session }),
    )
  }

  appendRecording({ session, offset, parts }: AppendRecordingRequest): Promise<Appended> {
    return this.#steps.time(
      'recording_append',
      () => this.#options.recordings.append(session, offset, parts),
      (appended) => ({ result: appended ? 'appended' : 'failed' }),
    )
  }

  endRecording({ session }: { session: string }): Promise<void> {
    return this.#options.recordings.end(session)
  }

  async close(said: CloseRequest): Promise<void> {
    const session = this.#running.get(said.session)
    const request = accountOf(session, said)
    const deps = { ...this.#options, arrears: this.#arrears }
    await this.#returning(session)
    const recording = await accountFor(session, request, this.#options.now(), deps)
    this.#options.recordings.onClosed(session.id)
    this.#onClosed(session, request, endedRecording(session, recording))
  }

  async #returning({ target: { accountId }, user }: RunningSession): Promise<void> {
    const { secretChanges } = this.#options
    if (accountId === undefined || !secretChanges) return
    try {
      await this.#arrears.write(() => secretChanges.onReturn(accountId, 'session', user))
    } catch (error) {
      // The session must end, and free its account, whatever becomes of the change.
      secretChanges.onFault(error)
    }
  }

  #onClosed(
    session: RunningSession,
    end: Pick<CloseRequest, 'result' | 'reason'>,
    ended?: EndedRecording,
  ): void {
    this.#running.remove(session.id)
    this.#steps.closed(session.id)
    const { accountId } = session.target
    // The job is stored: if it is not woken now, it looks for itself.
    if (accountId !== undefined) this.#options.secretChanges?.freed(accountId).catch(() => undefined)
    this.#fourEyes.onClosed(session.id)
    this.#asks.onClosed(session.id, 'the session has ended')
    this.#invitations.onClosed(session.id)
    this.#options.onClosed?.(session.id, session.isRecorded, ended)
    this.#live.onClosed(session.id, end)
    this.#octets.onClosed(session.id)
    session.recording?.key.wipe()
  }

  async counted(request: CountedRequest): Promise<void> {
    this.#octets.counted(request)
  }

  /** Returns the octets so far of the sessions that run here. */
  octets(): Promise<Counted> {
    return this.#octets.of(this.#running)
  }

  async live(request: LiveRequest): Promise<LiveAnswer> {
    return this.#live.take(request)
  }

  askCommand(request: AskCommandRequest): Promise<AskCommandAnswer> {
    return whileThere(
      this.#options.store.reach,
      () => this.#asks.ask(this.#running.get(request.session), request),
      (message) => ({ result: 'refused', message }),
    )
  }

  async giveUpCommand({ session, ask }: { session: string; ask: number }): Promise<void> {
    await this.#asks.giveUp(session, ask)
  }

  async withdraw({ identity, approval }: { identity: string; approval: string }): Promise<void> {
    await this.#withdraw(this.#waits.remove(identity, approval))
  }

  /** Cancels the requests of clients that have gone. */
  async #withdraw(approvals: readonly Id[]): Promise<void> {
    for (const id of approvals) await this.#arrears.write(() => this.approvals.cancelOwn(id))
  }

  async leave({ identity }: { identity: string }): Promise<void> {
    this.#signIns.forget(identity)
    this.#menuHours.forget(identity)
    await this.#withdraw(this.#waits.remove(identity))
    await this.#invitations.onGuestClosed(identity)
  }

  /** Returns a function that removes the listener. */
  onNotice(listener: (notice: GateNotice) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Whether a session of this id runs, in any worker. */
  isRunning(session: string): boolean {
    return this.#running.find(session) !== undefined
  }

  /** Whether this is the token of a sign-in, in any worker. */
  isSignedIn(token: string): boolean {
    return this.#signIns.has(token)
  }

  /**
   * Ends a session whose proxy has died: seals what is on the disk of its recording, and accounts for it. Returns
   * a line for the log. What the database does not take while it is away is done when it is back. Rejects if it
   * failed otherwise; the broker's next start tries again.
   */
  async abandon(id: string, reason: string): Promise<string> {
    const session = this.#running.find(id)
    if (!session) return `session ${id} had ended`
    session.stopped ??= reason
    const cause = session.stopped
    const { recordings } = this.#options
    await this.#returning(session)
    // What the disk still has to write may fail, or hang: the recovery finds what is there.
    await recordings.settle(id)
    const noted = recordings.noted(id)
    recordings.onClosed(id)
    try {
      const deps = { ...this.#options, recordingService: recordings }
      let line = `session ${id}: ${cause}; it is closed when the database is back`
      await this.#arrears.write(async () => {
        line = await recoverAbandoned(deps, id, cause, noted)
      })
      return line
    } finally {
      this.#onClosed(session, { result: 'failure', reason })
    }
  }

  /** Returns why the session cannot be watched now, or undefined if it can. */
  watchRefusal(id: string): Exclude<Watching['result'], 'watching'> | undefined {
    const session = this.#running.find(id)
    if (session) return this.#live.refusal(session)
    return this.#running.elsewhere.has(id) ? 'runs_elsewhere' : 'not_running'
  }

  /**
   * Shows a running session to the watcher until the caller calls the answer's `stop` or the session ends.
   */
  watch(id: string, watcher: Watcher): Watching {
    const session = this.#running.find(id)
    if (!session) return { result: 'not_running' }
    return this.#live.watch(session, watcher)
  }

  /**
   * Ends a running session on the request of `by`, made with `apiKey` if set. Returns false if no such
   * session runs.
   */
  async kill(id: string, reason: string, by: string, apiKey?: string): Promise<boolean> {
    const session = this.#running.find(id)
    if (!session) return (await this.#running.elsewhere.get(id)?.kill(reason, by, apiKey)) ?? false
    await this.#options.audit.record('session.kill', {
      ...killFields(session),
      user: by,
      ...(apiKey !== undefined && { api_key: apiKey }),
      reason,
    })
    session.stopped = `ended by ${by}: ${reason}`
    this.#notify({ type: 'stop', session: id, reason: session.stopped })
    return true
  }

  /**
   * Holds the input of a running session's client on the request of `by`, or changes the reason. Returns false if no
   * such session runs.
   */
  async suspend(id: string, reason: string, by: OrderedBy): Promise<boolean> {
    const session = this.#running.find(id)
    if (!session) return (await this.#running.elsewhere.get(id)?.suspend(reason, by)) ?? false
    await this.#suspensions.hold(session, 'order', reason, by)
    this.#asks.onClosed(id, 'input was suspended')
    return true
  }

  /** Ends what `suspend` began. `not_suspended`: nothing was suspended by an order. */
  async release(id: string, by: OrderedBy): Promise<ReleaseAnswer> {
    const session = this.#running.find(id)
    if (!session) return (await this.#running.elsewhere.get(id)?.release(by)) ?? 'not_running'
    return (await this.#suspensions.release(session, 'order', by)) ? 'released' : 'not_suspended'
  }

  /** Returns why the input of a session is held, or undefined if it is not. */
  holdOf(id: string): Hold | undefined {
    const session = this.#running.find(id)
    return session ? holdOf(session) : this.#running.elsewhere.get(id)?.hold
  }

  /** Invites a guest to a running session. The password is returned only once. */
  async invite(id: string, request: InviteRequest): Promise<InviteAnswer> {
    if (this.#running.elsewhere.has(id)) return { result: 'runs_elsewhere' }
    const session = this.#running.find(id)
    if (!session || session.stopped !== undefined) return { result: 'not_running' }
    if (session.target.protocol !== 'VNC' || session.target.isStrict) return { result: 'not_shareable' }
    return await this.#invitations.invite(session, request)
  }

  /** Lists a session's invitations: those that wait, and those whose guest is connected. */
  invitations(id: string): Invitation[] {
    return this.#invitations.ofSession(id)
  }

  /** Sets the guest's rights on the request of `by`, whose sign-in rests on `basis`. */
  setGuestMode(invitation: string, mode: GuestMode, by: string, basis: Basis): void {
    this.#invitations.setMode(invitation, mode, by, basis)
  }

  /** Withdraws the invitation; its guest has to leave. */
  withdrawInvitation(invitation: string, reason: string, by?: string): void {
    this.#invitations.withdraw(invitation, reason, by)
  }

  /** Returns the user of a running session, or undefined if it does not run. */
  ownerOf(id: string): string | undefined {
    return this.#running.find(id)?.userId
  }

  /**
   * Ends all that changes since the last review, or time, no longer permit: sessions, connections without one,
   * tickets, invitations. Cheap if there was no change. Resolves when the proxies have their notices and the
   * events are written. Rejects if any of it failed, after the rest is done. While the database is away, ends the
   * sessions whose known time has come.
   */
  async review(): Promise<void> {
    const isAway = this.#options.store.reach.away !== undefined
    // What is withdrawn waits for no other work, and happens whatever fails beside it.
    const done = await Promise.allSettled(
      isAway
        ? [this.#review.runWithoutStore(), this.#endApproved()]
        : [this.#review.run(), this.#endApproved(), this.#expireWaits(), this.#judgeMenus()],
    )
    for (const one of done) if (one.status === 'rejected') throw one.reason
  }

  /** Ends the requests whose time has come, and tells the clients that wait for them. */
  async #expireWaits(): Promise<void> {
    if (await this.#waits.tick()) await this.#review.run()
  }

  /** Shows menus anew whose timeframes end. */
  async #judgeMenus(): Promise<void> {
    if (await this.#menuHours.tick()) await this.#review.run()
  }

  /** Warns and ends the sessions whose approvals come to their end. */
  async #endApproved(): Promise<void> {
    const { over, warned } = this.#approvalEnds.due(this.#options.now(), this.#running)
    for (const [{ id }, text] of warned) this.#notify({ type: 'tell', session: id, text })
    if (over.length === 0) return
    const withdrawals = new Withdrawals()
    await withdrawals.each(over, async (session) => this.#stop(session, OVER))
    await withdrawals.tell()
  }

  /** Does the same for all that runs, after the database was away: another server may have taken over. */
  reviewAll(): Promise<void> {
    return this.#review.runAll()
  }

  /** Returns the users that have a session, a sign-in, a ticket or an invitation. */
  userIds(): Id[] {
    return this.#review.userIds()
  }

  /** Sends the notices again for what has lost its right and has not ended: its proxy may not have known it yet. */
  remind(): void {
    for (const session of this.#running) if (session.isWithdrawn) this.#notifyStop(session)
    this.#signIns.remind()
  }

  *#bases(): Iterable<Basis> {
    for (const { basis, stopped } of this.#running) if (stopped === undefined) yield basis
    yield* this.#signIns.bases()
    yield* this.tickets.bases()
    yield* this.#invitations.bases()
  }

  /** Whether another user has a session with the account. */
  /** Claims an account for a change of its secret, or returns undefined if a session has it. */
  claimForChange(accountId: Id): (() => void) | undefined {
    return this.#running.claim(accountId, '')
  }

  holdFor(accountId: Id, otherThan: Id): boolean {
    return this.#running.holdFor(accountId, otherThan)
  }

  /**
   * Ends a session that has lost its right, even if the audit log fails. Sends the notice again to a session
   * stopped before.
   */
  async #end(session: RunningSession, reason: string): Promise<void> {
    await this.#stop(session, reason)?.()
  }

  /** Stops the session. Returns a function that writes the event, or undefined if it was written before. */
  #stop(session: RunningSession, reason: string): Telling | undefined {
    const isNew = session.stopped === undefined
    session.stopped ??= reason
    session.isWithdrawn = true
    this.#notifyStop(session)
    if (!isNew) return undefined
    return () => this.#options.audit.record('session.kill', { ...killFields(session), reason })
  }

  #notifyStop({ id, stopped = '' }: RunningSession): void {
    this.#notify({ type: 'stop', session: id, reason: stopped })
  }

  /**
   * Ends the running sessions for which `which` holds. Resolves when that is in the audit log; rejects if one of
   * them could not be written there, after the others are.
   */
  async endAll(reason: string, which: (session: { isStrict: boolean }) => boolean): Promise<void> {
    const withdrawals = new Withdrawals()
    await withdrawals.each(this.#running, async (session) =>
      which({ isStrict: session.target.isStrict }) ? this.#stop(session, reason) : undefined,
    )
    await withdrawals.tell()
  }

  /**
   * Refuses new sessions from now on; `reason` is shown to users. Resolves when no opening is in progress any
   * more.
   */
  drain(reason: string): Promise<void> {
    return this.#opening.drain(reason)
  }

  /** Reports to the users that no watcher can come any more: the API closes. */
  onUnwatchable(): void {
    this.#fourEyes.onUnwatchable(this.#running)
  }

  /** Sends the clients away that wait for approvals: their requests stay, and are found by the next broker. */
  async dismissWaiting(): Promise<void> {
    await this.#options.store.approvals.detach(this.approvals.process)
    this.#waits.dismiss()
  }

  /** Takes a drain back. */
  resume(): void {
    this.#opening.resume()
  }

  get running(): number {
    return this.#running.count
  }

  /** The sessions that run here. */
  get sessions(): Iterable<RunningSession> {
    return this.#running
  }

  /** The sessions that run on in brokers that this one has replaced. */
  get elsewhere(): Map<Id, ElsewhereSession> {
    return this.#running.elsewhere
  }

  get hostTrust(): HostTrust {
    return this.#hostKeys.trust
  }

  /** Replaces the trust settings for host keys. */
  set hostTrust(trust: HostTrust) {
    this.#hostKeys.trust = trust
  }

  #notify(notice: GateNotice): void {
    for (const listener of this.#listeners) listener(notice)
  }
}

/**
 * Opens a session: checks whether it is allowed now and collects all that it needs. A denial is audited with
 * its reason.
 */
import { join } from 'node:path'
import { ulid } from 'ulid'
import { FILE_NAME } from '../../recordings/container/format/limits.ts'
import type { RecordingGrant } from '../../recordings/container/grant.ts'
import { NoSpaceError } from '../../recordings/container/recording-file.ts'
import { canonicalName, resolveTarget, type Target } from '../access/targets.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { OpenAnswer, OpenRequest, ReasonQuestion } from '../contract/gate.ts'
import { type Basis, type Grounds, keyOf } from '../identity/basis.ts'
import { type CertificateLimits, limitsOf } from '../identity/certificate-options.ts'
import { formatTarget, parseTargetName, type WantedTarget } from '../model/login.ts'
import type { Id, User } from '../model/objects.ts'
import type { Protocol, Right } from '../model/rights.ts'
import { Secret } from '../model/secret.ts'
import type { RecordingService } from '../recording-service/service.ts'
import type { Store, TargetRow } from '../store/store.ts'
import type { Vault } from '../vault/vault.ts'
import { approvalOf, type Clearance, ClearanceDesk, type ClearanceOptions } from './clearance.ts'
import { Denial } from './denial.ts'
import type { FactorDesk } from './factor-desk.ts'
import { Forwarding } from './forwarding.ts'
import { firstHold } from './four-eyes.ts'
import { HandOut, SPENT } from './hand-out.ts'
import { claimAccount } from './lock.ts'
import { logonFor, logsInItself } from './logons.ts'
import {
  type RunningSession,
  type RunningSessions,
  recordOf,
  sessionFields,
  targetFields,
} from './running.ts'
import type { SecretChanges } from './secret-changes.ts'
import { accessFor, hasKerberos, openSession, termsFor } from './session-access.ts'
import { whoFields } from './sign-in-fields.ts'
import type { SignedIn } from './signed-in.ts'
import type { Steps } from './steps.ts'

/**
 * Limits of running sessions per user and in all: a connection costs memory, files and a place at the target.
 */
export const MAX_SESSIONS_PER_USER = 500
export const MAX_SESSIONS = 10_000

/** For the audit. */
const OUTSIDE = 'it is outside the timeframes of the authorization'

export interface OpeningOptions extends Omit<ClearanceOptions, 'store'> {
  store: Store
  vault: Vault
  audit: Audit
  recordings: RecordingService
  running: RunningSessions
  grounds: () => Grounds
  factorDesk: Pick<FactorDesk, 'cleared'>
  secretChanges?: Pick<SecretChanges, 'settled'>
  steps: Steps
}

/** Target that the user may open, and the limits of the user's certificate. */
interface Allowed {
  found: Target
  limits: CertificateLimits | undefined
}

/** The grounds of a session, and its target with the rights. */
type Cleared = Clearance & { target: Target; hasFactor?: true }

export class Opening {
  readonly #options: OpeningOptions
  readonly #desk: ClearanceDesk
  #draining: string | undefined
  /** Number of openings in progress. */
  #open = 0
  #onSettled: (() => void) | undefined

  constructor(options: OpeningOptions) {
    this.#options = options
    this.#desk = new ClearanceDesk(options)
  }

  /**
   * Refuses new sessions from now on; `reason` is shown to users. Resolves when the openings in progress have
   * ended: afterwards no session begins.
   */
  async drain(reason: string): Promise<void> {
    this.#draining = reason
    if (this.#open === 0) return
    await new Promise<void>((resolve) => {
      const before = this.#onSettled
      this.#onSettled = () => {
        before?.()
        resolve()
      }
    })
  }

  /** Returns the question of a reason without which no session opens there, or undefined. */
  async reasonAhead(userId: Id, target: Target): Promise<ReasonQuestion | undefined> {
    return await this.#desk.questionAhead(userId, target)
  }

  /** Accepts new sessions again. */
  resume(): void {
    this.#draining = undefined
  }

  /** Calls `onRunning` with the session's id before it can be reviewed. */
  async open(
    signedIn: SignedIn,
    request: OpenRequest,
    onRunning?: (session: Id) => void,
  ): Promise<OpenAnswer> {
    this.#open++
    try {
      return await this.#judge(signedIn, request, onRunning)
    } finally {
      if (--this.#open === 0) this.#onSettled?.()
    }
  }

  async #judge(
    signedIn: SignedIn,
    request: OpenRequest,
    onRunning: ((session: Id) => void) | undefined,
  ): Promise<OpenAnswer> {
    const { target: chosen } = request
    const { reason } = signedIn
    if (chosen === undefined && !request.reason && reason) request = { ...request, reason }
    const wanted = chosen === undefined || signedIn.isBound ? signedIn.login.target : parseTargetName(chosen)
    if (!wanted) return { result: 'denied', message: 'no target was named' }
    let where: EventFields = Object.fromEntries(Object.entries(wanted).filter(([, name]) => name !== ''))
    try {
      if (this.#draining !== undefined) throw new Denial(this.#draining)
      const person = await this.#person(signedIn, wanted)
      const [asked, rows] = await this.#found(signedIn, wanted, request.protocol)
      where = targetFields(asked)
      allowedAt(asked, signedIn.basis)
      this.#requirePlace(person)
      const { identity, factor } = request
      const needed = await this.#options.factorDesk.cleared(signedIn, person, asked, identity, factor)
      if (needed) return needed
      const granted = await this.#cleared(person, signedIn, request, asked, rows)
      if ('result' in granted) return granted
      const hasFactor = signedIn.hasFactor || asked.needsFactor
      const cleared = { ...granted, ...(hasFactor && { hasFactor }) }
      const allowed = allowedAt(cleared.target, signedIn.basis)
      return await this.#using(cleared, () =>
        oncePerProof(signedIn, asked, () =>
          this.#withAccount(person, asked.accountId, () =>
            this.#prepare(person, signedIn, request, { ...allowed, cleared }, onRunning),
          ),
        ),
      )
    } catch (error) {
      if (!(error instanceof Denial)) throw error
      const { reason, message } = error
      await this.#options.audit.record('session.denied', {
        ...whoFields(signedIn),
        protocol: request.protocol,
        ...where,
        reason,
      })
      return { result: 'denied', message }
    }
  }

  /** Returns the user, whose rights may have been removed since the sign-in. @throws Denial */
  async #person({ userId, source, basis }: SignedIn, wanted: WantedTarget): Promise<User> {
    const grounds = this.#options.grounds()
    const flaw = await grounds.flawOf(basis, source.address)
    const person = await grounds.user(userId)
    if (person && flaw === undefined) return person
    throw new Denial(
      flaw ?? 'the user was removed',
      `the target ${formatTarget(wanted)} does not exist, or you may not open it`,
    )
  }

  /** Returns what the target is opened by, or the answer that asks for it. @throws Denial */
  async #cleared(
    person: User,
    signedIn: SignedIn,
    request: OpenRequest,
    asked: Target,
    rows: readonly TargetRow[],
  ): Promise<Cleared | OpenAnswer> {
    if (asked.quorum === undefined) {
      const given = this.#desk.reasonFor(asked, request)
      return 'result' in given ? given : { ...given, target: asked }
    }
    const waited =
      request.approval === undefined
        ? undefined
        : await this.#desk.waitedFor(request.approval, person, asked, request)
    if (waited && 'result' in waited) return waited
    const usable = waited ? [waited] : await this.#desk.usable(person.id, asked)
    for (const approval of usable) {
      const { accountName: account, domainName: domain, deviceName: device, serviceName: service } = asked
      const hasFactor = signedIn.hasFactor ?? asked.needsFactor
      const approved = approval.authorizationId
      const counting = { approved, isOutside: asked.isOutside === true, hasFactor }
      const resolution = resolveTarget(rows, { account, domain, device, service }, request.protocol, counting)
      if (resolution.result !== 'found' || resolution.target.needsFactor) continue
      const { comment, ticket } = approval
      return { approval, reason: { comment, ticket }, target: resolution.target }
    }
    if (waited) throw new Denial('the authorization of the approval is gone')
    const from = { ...whoFields(signedIn), ...targetFields(asked) }
    const { target_host: _host, ...fields } = from
    return await this.#desk.ask(person, signedIn, asked, request, fields)
  }

  /** Counts a use of the approval, unless no session comes of it. @throws Denial */
  async #using({ approval }: Clearance, open: () => Promise<OpenAnswer>): Promise<OpenAnswer> {
    if (!approval) return await open()
    await this.#desk.use(approval)
    let isOpened = false
    try {
      const answer = await open()
      isOpened = answer.result === 'opened'
      return answer
    } finally {
      if (!isOpened) await this.#desk.release(approval)
    }
  }

  /** @throws Denial */
  async #found(
    { userId, hasFactor }: SignedIn,
    wanted: WantedTarget,
    protocol: Protocol,
  ): Promise<[Target, readonly TargetRow[]]> {
    const { now, store } = this.#options
    const at = now()
    const { device } = wanted
    const rows = await store.access.sessionTargets(userId, at, { device })
    const resolution = resolveTarget(rows, wanted, protocol, { hasFactor })
    if (resolution.result === 'found') return [resolution.target, rows]
    const { message } = resolution
    if (resolution.result === 'ambiguous') throw new Denial(message)
    // The user reads the same as of a target that does not exist.
    const others = await store.access.sessionTargets(userId, at, { device, isOutside: true })
    const outside = resolveTarget(others, wanted, protocol, { isOutside: true, hasFactor })
    if (outside.result === 'found' && outside.target.quorum !== undefined) return [outside.target, others]
    const isOutside = others.length > 0 && resolveTarget(others, wanted, protocol).result !== 'unknown'
    throw new Denial(isOutside ? `${message}: ${OUTSIDE}` : message, message)
  }

  /** @throws Denial if as many sessions are open as may be */
  #requirePlace(person: User): void {
    const { running } = this.#options
    if (running.count + running.elsewhere.size >= MAX_SESSIONS)
      throw new Denial('too many sessions are open, try again later')
    if (running.ofUser(person.id) >= MAX_SESSIONS_PER_USER) {
      throw new Denial(`you have ${MAX_SESSIONS_PER_USER} sessions open: close one first`)
    }
  }

  /** Runs `work` while no other user can claim the account, if its policy locks it. @throws Denial */
  async #withAccount<T>(person: User, accountId: Id | undefined, work: () => Promise<T>): Promise<T> {
    const { store, running, now, secretChanges } = this.#options
    if (accountId === undefined) return await work()
    if ((await secretChanges?.settled(accountId)) === false)
      throw new Denial('the secret of this account is being changed: try again in a moment')
    const release = await claimAccount(store, running, accountId, person.id, now())
    if (typeof release !== 'function') {
      const until = release.until === undefined ? '' : ` until ${new Date(release.until).toISOString()}`
      throw new Denial(
        `somebody else is using this account, and its checkout policy locks it${until}: try again later`,
      )
    }
    try {
      return await work()
    } finally {
      release()
    }
  }

  async #prepare(
    person: User,
    signedIn: SignedIn,
    request: OpenRequest,
    { found, limits, cleared }: Allowed & { cleared: Cleared },
    onRunning?: (session: Id) => void,
  ): Promise<OpenAnswer> {
    const { store, now } = this.#options
    const { source, basis, kept } = signedIn
    const { accountId } = found
    // Read before the credential: one that is set in between ends the session.
    const severedRevision =
      accountId === undefined ? undefined : ((await store.accounts.find(accountId))?.severedRevision ?? 0)
    const terms = await termsFor(store, found)
    const logon =
      found.accountId === undefined && !logsInItself(found)
        ? logonFor(found, kept, request.logon, request.target === undefined)
        : undefined
    if (logon && 'ask' in logon) return { result: 'logon_needed', question: logon.ask }
    const target = logon ? { ...found, accountName: logon.login, accountLogin: logon.login } : found
    const { ssh } = terms.policy
    const session: RunningSession = {
      id: ulid(),
      userId: person.id,
      user: person.userName,
      source,
      target,
      begin: now(),
      isRecorded: target.isRecorded,
      tellsWatched: ssh.tellWatched,
      askMs: ssh.askTimeout * 1000,
      basis,
      ...(severedRevision !== undefined && { severedRevision }),
      hasKerberos: await hasKerberos(store, target, terms),
      hostCaKeys: ssh.hostCaKeys,
      ...(target.isWatched && { holds: new Map([['unwatched' as const, firstHold(now())]]) }),
      ...(cleared.hasFactor && { hasFactor: true }),
      ...(cleared.approval && { approval: approvalOf(cleared.approval) }),
      ...(cleared.reason && { reason: cleared.reason }),
      usesPrivilegedPort: target.protocol === 'RLOGIN' && terms.policy.login.privilegedPort,
    }
    const access = await this.#options.steps.time(
      'credential',
      () => accessFor(this.#options, session, terms, logon),
      (opened) => ({
        result: opened ? 'opened' : 'failed',
        ...{ protocol: target.protocol, identity: request.identity, session: session.id },
      }),
    )
    const recording = target.isRecorded ? await this.#prepareRecording(session) : undefined
    if (waitsForHostKey(found)) {
      const handOut = new HandOut(signedIn, access.credentials)
      session.handOut = handOut
      if (terms.methods.includes('KERBEROS_FORWARDING'))
        session.forwarding = new Forwarding({ kept, handOut, host: found.host, login: found.accountLogin })
    }
    onRunning?.(session.id)
    await this.#register(session, access.serial)
    const shown = session.handOut ? { ...access, credentials: [] } : access
    return { result: 'opened', session: openSession(session, terms, shown, { logon, limits, recording }) }
  }

  /** @throws Denial */
  async #prepareRecording(session: RunningSession): Promise<RecordingGrant> {
    const { audit, recordings } = this.#options
    const { target } = session
    try {
      const { grant, directory } = await recordings.prepare(session.id, session.begin, {
        user: session.user,
        client: session.source.address,
        target: canonicalName(target),
        host: target.host,
        protocol: target.protocol,
        ...(target.isStrict && { recording_mode: 'strict' }),
        ...(session.approval && { approval: session.approval.id }),
      })
      session.recording = {
        path: join(directory, FILE_NAME),
        key: Secret.of(grant.key),
      }
      return grant
    } catch (error) {
      const reason = `the recording cannot begin: ${error instanceof Error ? error.message : String(error)}`
      await audit.record('recording.failed', { ...sessionFields(session), reason })
      const why =
        error instanceof NoSpaceError
          ? 'the disk is full, and the session cannot be recorded'
          : 'the session cannot be recorded'
      throw new Denial(reason, `${why}, so it is not opened: tell an administrator`)
    }
  }

  /** Audits and lists the session; `serial` is that of its certificate. */
  async #register(session: RunningSession, serial: bigint | undefined): Promise<void> {
    const { store, audit, recordings, running } = this.#options
    const { target } = session
    const authorization = target.authorizationNames.join(', ')
    const opening = audit.record('session.open', {
      ...sessionFields(session),
      authorization,
      ...(target.kind !== 'account' && { method: target.kind }),
      ...(serial !== undefined && { object_type: 'certificate', object: String(serial) }),
      ...(session.reason && { reason: session.reason.comment, ticket: session.reason.ticket }),
      ...(session.approval && { approval: session.approval.id }),
      ...(target.isCritical && { critical: 'true' }),
    })
    await opening.catch((error: unknown) => {
      recordings.onClosed(session.id)
      throw error
    })
    // Added before it is listed, so that it can be watched and ended as soon as it is visible.
    running.add(session)
    try {
      await store.sessions.create(recordOf(session, authorization))
    } catch (error) {
      running.remove(session.id)
      recordings.onClosed(session.id)
      await audit.record('session.close', {
        ...sessionFields(session),
        result: 'failure',
        reason: 'the session could not be stored',
      })
      throw error
    }
  }
}

/**
 * Opens with a stored credential once per sign-in: a proxy that was taken over gets the credential of one target,
 * not of all that its users may open. @throws Denial
 */
async function oncePerProof(
  signedIn: SignedIn,
  found: Target,
  open: () => Promise<OpenAnswer>,
): Promise<OpenAnswer> {
  if (found.accountId === undefined) return await open()
  if (signedIn.isSpent) throw new Denial(SPENT)
  if (waitsForHostKey(found)) return await open()
  signedIn.isSpent = true
  try {
    return await open()
  } catch (error) {
    // No credential was handed out.
    signedIn.isSpent = false
    throw error
  }
}

/** Whether the credentials are handed out when the target's host key is accepted: not to one that is unreachable. */
function waitsForHostKey({ accountId, protocol }: Target): boolean {
  return accountId !== undefined && protocol === 'SSH'
}

/** Returns the target with the rights that the certificate of the sign-in leaves. @throws Denial */
function allowedAt(target: Target, basis: Basis): Allowed {
  if (target.rights.length === 0) {
    throw new Denial(`the service ${target.serviceName} allows nothing that you have a right to`)
  }
  const certificate = keyOf(basis)?.certificate
  const limits = certificate && limitsOf(certificate)
  const found = limits ? without(target, limits.withheld) : target
  if (found.rights.length === 0) {
    throw new Denial('your certificate withholds all that you have a right to there')
  }
  return { found, limits }
}

function without(target: Target, withheld: readonly Right[]): Target {
  return { ...target, rights: target.rights.filter((right) => !withheld.includes(right)) }
}

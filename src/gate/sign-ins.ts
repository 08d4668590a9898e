/** Sign-ins and their tokens: a proxy authenticates once, and holds the token afterwards. */
import type { Target } from '../access/targets.ts'
import type { Audit, FieldsOf } from '../audit/events/catalogue.ts'
import type {
  AnswersProof,
  AuthenticateAnswer,
  AuthenticateRequest,
  ReasonQuestion,
} from '../contract/gate.ts'
import { apiKeyOf, type Basis, type Grounds, passwordProof } from '../identity/basis.ts'
import { readOfferedKey } from '../identity/certificate.ts'
import type { Identities } from '../identity/chain.ts'
import { LOCKOUT_LIMITS } from '../identity/lockout.ts'
import { splitDomain } from '../identity/places.ts'
import type { Begun, Outcome, Refusal, SignIn } from '../identity/sign-in.ts'
import type { SshTickets } from '../identity/ssh-tickets.ts'
import { type Login, parseLogin } from '../model/login.ts'
import type { NtlmProof } from '../model/ntlm-auth.ts'
import type { Id } from '../model/objects.ts'
import type { Protocol } from '../model/rights.ts'
import { Secret } from '../model/secret.ts'
import type { Store } from '../store/store.ts'
import { AskedQuestions } from './asked-questions.ts'
import type { FactorDesk } from './factor-desk.ts'
import type { Invitations } from './invitations.ts'
import { judgeTicket, rejectNone } from './kerberos-proofs.ts'
import { logonAhead, wipe } from './logons.ts'
import type { RunningSession } from './running.ts'
import {
  keyFields,
  ownerOf,
  recordSuccess,
  roundOf,
  serverFields,
  UNAVAILABLE,
  whoFields,
} from './sign-in-fields.ts'
import { newToken, type SignedIn } from './signed-in.ts'
import { isOfTickets, type Ticket, type Tickets } from './tickets.ts'
import type { Touched } from './touched.ts'
import { UsedSignatures } from './used-signatures.ts'
import { chosen, type Withdrawals } from './withdrawals.ts'

const REPLAYED = 'used_signature'

export interface SignInOptions {
  store: Pick<Store, 'access'>
  identities: Identities
  sshTickets?: SshTickets
  tickets: Tickets
  invitations: Pick<Invitations, 'byResponse' | 'byPassword' | 'enter'>
  audit: Audit
  grounds: () => Grounds
  /** Yields the running sessions. */
  running: () => Iterable<Pick<RunningSession, 'basis' | 'isWithdrawn'>>
  /** Returns the question of a reason without which a session there does not open, or undefined. */
  reasonAhead: (userId: Id, target: Target) => Promise<ReasonQuestion | undefined>
  /** Returns what the target of the login string requires of the user, or undefined. */
  factorAhead: FactorDesk['ahead']
  /** Called when a sign-in is no longer valid: the proxy ends the connection and shows the reason. */
  onWithdrawn: (token: string, reason: string) => void
  /** Milliseconds since the epoch. */
  now: () => number
}

export class SignIns {
  readonly #options: SignInOptions
  readonly #byToken = new Map<string, SignedIn>()
  readonly #asked = new AskedQuestions()
  readonly #signatures = new UsedSignatures()

  constructor(options: SignInOptions) {
    this.#options = options
  }

  async authenticate(request: AuthenticateRequest): Promise<AuthenticateAnswer> {
    const { protocol, source, login, proof } = request
    const { factorAhead, identities, tickets, invitations, now } = this.#options
    const arrival = { protocol, address: source.address }
    if (proof.method === 'ticket') {
      const invited = () => invitations.byResponse(source, proof.challenge, proof.response)
      // A response is compared with all that wait: not for who is locked out.
      const isGuess = protocol !== 'VNC' || (await identities.isLocked({ user: '', source: source.address }))
      if (!isGuess && (await invited()) !== undefined) return await this.#asGuest(request, invited)
      return await this.#byTicket(request, '', () => tickets.byResponse(arrival, proof, now()))
    }
    if (proof.method === 'ntlm') return await this.#byNtlm(request, proof.proof)
    const parsed = parseLogin(login)
    if (!('malformed' in parsed) && 'password' in proof && isOfTickets(protocol)) {
      // While the user is locked out, a ticket is handled like any password: the time must not reveal that it
      // is valid.
      const isLocked = await identities.isLocked({ user: parsed.user, source: source.address })
      const ticketUser = splitDomain(parsed.user).name
      const invited = () => invitations.byPassword(source, ticketUser, proof.password)
      if (!isLocked && protocol === 'VNC' && (await invited()) !== undefined) {
        return await this.#asGuest(request, invited)
      }
      const find = () => tickets.byPassword(arrival, { ...parsed, user: ticketUser }, proof.password, now())
      if (!isLocked && (await find()) !== undefined) return await this.#byTicket(request, ticketUser, find)
    }
    if ('malformed' in parsed) {
      const client = { client_ip: source.address, client_port: source.port }
      return await this.#malformed({ ...client, protocol, method: proof.method }, parsed.malformed)
    }
    if (proof.method === 'none') return await rejectNone(this.#options.sshTickets, protocol)
    if ('answers' in proof) return await this.#answered(proof, request)
    const { user } = parsed
    if (proof.method === 'gssapi-with-mic') {
      const judged = await judgeTicket(this.#options.sshTickets, request, user, proof)
      if ('result' in judged) return judged
      return await this.#judged(request, judged.begun, judged.outcome, undefined, judged.detail)
    }
    const signIn: SignIn = {
      ...{ user, login, source: source.address, owner: ownerOf(request), proof },
      waitsBy: protocol,
    }
    const outcome = await identities.authenticate(signIn, async ({ id }) =>
      parsed.target ? await factorAhead(id, parsed.target, protocol) : undefined,
    )
    const password = 'password' in proof ? Secret.of(proof.password) : undefined
    try {
      return await this.#judged(request, signIn, outcome, password)
    } finally {
      password?.wipe()
    }
  }

  /**
   * `signIn`: as it was begun, with the login string of the request. `password`: its password; stays the caller's.
   * `detail`: why it was rejected, for the audit log, where the reason does not say it.
   */
  async #judged(
    { protocol, source, login }: AuthenticateRequest,
    { proof }: Begun,
    outcome: Outcome,
    password?: Secret,
    detail?: string,
  ): Promise<AuthenticateAnswer> {
    const { audit } = this.#options
    const parsed = parseLogin(login) as Login
    const signed = proof.method === 'publickey' ? proof.signed : undefined
    const key = proof.method === 'publickey' && signed ? readOfferedKey(proof.key) : undefined
    const fields = {
      user: parsed.user,
      client_ip: source.address,
      client_port: source.port,
      protocol,
      method: proof.method,
      ...(key && keyFields(key)),
    }
    switch (outcome.result) {
      case 'key_acceptable':
        return { result: 'key_acceptable' }
      case 'rejected':
        // Offering a key of another user is no attempt: agents offer all the keys they hold. Nor is the question whether to
        // begin in a browser; what was refused there is.
        if (isAttempt(proof, signed !== undefined, outcome.reason))
          await this.#failed(fields, { ...outcome, ...(detail !== undefined && { reason: detail }) })
        return { result: 'rejected' }
      case 'unavailable': {
        const { server, reason } = outcome
        await audit.record('auth.unavailable', { ...fields, ...serverFields([server]), reason })
        return outcome.isHidden ? { result: 'rejected' } : { result: 'unavailable', message: UNAVAILABLE }
      }
      case 'challenge': {
        const { failure: reason } = outcome
        if (reason !== undefined) await this.#failed(fields, { reason, locks: false })
        return { result: 'challenge', challenge: roundOf(outcome) }
      }
    }
    const { user, by, classes, providerSession } = outcome
    const bounds = { ...(providerSession !== undefined && { providerSession }) }
    if (signed && !this.#signatures.isNew(signed.data)) {
      await this.#failed(fields, { reason: REPLAYED, locks: false })
      return { result: 'rejected' }
    }
    await recordSuccess(audit, fields, outcome)
    const signedIn: SignedIn = {
      userId: user.id,
      user: user.userName,
      login: parsed,
      protocol,
      source,
      basis: {
        userId: user.id,
        address: source.address,
        proof: key ? { method: 'key', key } : passwordProof(user, by, bounds),
        ...(classes && { classes }),
      },
      kept: { ...('forwarded' in proof && proof.forwarded && { forwarded: proof.forwarded }) },
      ...(outcome.hasFactor && { hasFactor: true }),
      ...(outcome.isUserVerified && { isUserVerified: true }),
    }
    return await this.#ahead(signedIn, user.displayName, login, password)
  }

  /** Asks what has to be known before a session opens, and completes the sign-in if that is nothing. */
  async #ahead(
    signedIn: SignedIn,
    displayName: string,
    login: string,
    password: Secret | undefined,
  ): Promise<AuthenticateAnswer> {
    const { store, now, reasonAhead } = this.#options
    const { protocol, userId } = signedIn
    const ahead = await logonAhead(store.access, signedIn, protocol, password !== undefined, now())
    const { target, question: logon, keepsPassword } = ahead
    // Other clients have a terminal or a screen for it after the sign-in.
    const asksNow = target !== undefined && protocol === 'SSH'
    const reason = asksNow ? await reasonAhead(userId, target) : undefined
    if (keepsPassword && password !== undefined) signedIn.kept.password = Secret.of(password.reveal())
    if (reason) {
      const question = { reason, ...(logon && { next: logon }) }
      return this.#asked.ask({ signedIn, displayName, login, question })
    }
    if (logon) return this.#asked.ask({ signedIn, displayName, login, question: { logon } })
    return await this.#welcome(signedIn, displayName)
  }

  /** Uses the name inside the proof, whatever other name the client has sent. */
  async #byNtlm(request: AuthenticateRequest, proof: NtlmProof): Promise<AuthenticateAnswer> {
    const { protocol, source } = request
    const { tickets, now } = this.#options
    const parsed = parseLogin(proof.user)
    if ('malformed' in parsed) {
      const client = { client_ip: source.address, client_port: source.port }
      return await this.#malformed({ ...client, protocol, method: 'ticket' }, parsed.malformed)
    }
    let found: { id: string; key: Uint8Array } | undefined
    const answer = await this.#byTicket(request, parsed.user, async () => {
      found = await tickets.byNtlm({ protocol, address: source.address }, parsed, proof, now())
      return found?.id
    })
    return answer.result === 'accepted' && found ? { ...answer, key: Uint8Array.from(found.key) } : answer
  }

  async #malformed(fields: FieldsOf<'auth.failure'>, message: string): Promise<AuthenticateAnswer> {
    await this.#options.audit.record('auth.failure', { ...fields, reason: 'malformed login string' })
    return { result: 'malformed', message }
  }

  /** `user`: the name sent with the ticket, or empty. `find` returns the ticket's id. */
  async #byTicket(
    { protocol, source }: AuthenticateRequest,
    user: string,
    find: () => Promise<string | undefined>,
  ): Promise<AuthenticateAnswer> {
    const { identities, audit, tickets, now } = this.#options
    let ticket: Ticket | undefined
    const outcome = await identities.byTicket({ user, source: source.address }, async () => {
      const id = await find()
      ticket = id === undefined ? undefined : await tickets.take(id, now())
      const flaw = ticket && (await this.#options.grounds().flawOf(ticket.basis, source.address))
      return flaw === undefined ? ticket?.userId : undefined
    })
    const fields = {
      client_ip: source.address,
      client_port: source.port,
      protocol,
      method: 'ticket',
    }
    if (outcome.result !== 'accepted' || !ticket) {
      const who = ticket?.user ?? user
      if (outcome.result === 'rejected')
        await this.#failed({ ...fields, ...(who !== '' && { user: who }) }, outcome)
      return { result: 'rejected' }
    }
    const { id, userName, profile, displayName } = outcome.user
    const { basis, target, hasFactor } = ticket
    const apiKey = apiKeyOf(basis)
    await audit.record('auth.success', {
      ...fields,
      user: userName,
      profile,
      ...(apiKey !== undefined && { api_key: apiKey }),
    })
    const login = { user: userName, target }
    const who = {
      userId: id,
      user: userName,
      login,
      protocol,
      source,
      basis,
      ...(hasFactor && { hasFactor }),
    }
    return await this.#welcome({ ...who, kept: {}, isBound: true }, displayName)
  }

  /** Signs in a guest: not a user, but invited to a running session. */
  async #asGuest(
    { protocol, source }: AuthenticateRequest,
    find: () => Promise<string | undefined>,
  ): Promise<AuthenticateAnswer> {
    const { identities, invitations, audit } = this.#options
    const token = newToken()
    const outcome = await identities.byInvitation({ user: '', source: source.address }, async () => {
      const id = await find()
      return id === undefined ? undefined : await invitations.enter(id, source, token)
    })
    const fields = { client_ip: source.address, client_port: source.port, protocol, method: 'ticket' }
    if ('result' in outcome) {
      await this.#failed(fields, outcome)
      return { result: 'rejected' }
    }
    if ('refusal' in outcome) {
      const message = outcome.refusal
      await audit.record('auth.failure', { ...fields, reason: message })
      return { result: 'unavailable', message }
    }
    const { name } = outcome
    return {
      result: 'accepted',
      identity: { token, user: name, displayName: name, hasTarget: false, guest: outcome },
    }
  }

  async #failed(
    fields: FieldsOf<'auth.failure'>,
    { reason, locks }: { reason: string; locks: boolean },
  ): Promise<void> {
    const { audit } = this.#options
    await audit.record('auth.failure', { ...fields, reason })
    if (locks) await audit.record('auth.locked', { ...fields, reason, duration: LOCKOUT_LIMITS.lockMs })
  }

  /** Completes the sign-in unless its basis was removed meanwhile: no review has seen it yet. */
  async #welcome(signedIn: SignedIn, displayName: string): Promise<AuthenticateAnswer> {
    const { user, login, source, basis } = signedIn
    const token = newToken()
    this.#byToken.set(token, signedIn)
    const flaw = await this.#options.grounds().flawOf(basis, source.address)
    if (flaw !== undefined) {
      this.forget(token)
      await this.#tellWithdrawn(signedIn, flaw)
      return { result: 'rejected' }
    }
    const identity = { token, user, displayName, hasTarget: login.target !== undefined }
    return { result: 'accepted', identity }
  }

  /**
   * Ends the sign-ins that rest on a removed basis, and those that were shown targets of which none is left.
   */
  async review(grounds: Grounds, withdrawals: Withdrawals, touched: Touched): Promise<void> {
    const { access } = this.#options.store
    const isTouched = ({ basis, hasTargets, withdrawn }: SignedIn) =>
      withdrawn === undefined && (touched.hasBasis(basis) || (hasTargets === true && touched.hasTargets))
    const withTargets = new Set<Id>()
    // Their sessions were judged before, and may go on in overtime or by an approval.
    const inUse = new Set<Basis>()
    for (const { basis, isWithdrawn } of this.#options.running()) if (!isWithdrawn) inUse.add(basis)
    await withdrawals.each(
      await chosen(this.#byToken, ([, signedIn]) => isTouched(signedIn)),
      async ([token, signedIn]) => {
        const { basis, source, userId, hasTargets } = signedIn
        const reason =
          (await grounds.flawOf(basis, source.address)) ??
          (hasTargets && !inUse.has(basis) && !withTargets.has(userId)
            ? 'nothing is left that you may open'
            : undefined)
        if (reason === undefined || this.#byToken.get(token) !== signedIn) return undefined
        signedIn.withdrawn = reason
        wipe(signedIn.kept)
        this.#options.onWithdrawn(token, reason)
        return () => this.#tellWithdrawn(signedIn, reason)
      },
      async (some) => {
        await grounds.prepare(some.map(([, { basis }]) => basis))
        // Of all, since a menu may be shown until they are judged.
        const ids = new Set(some.map(([, { userId }]) => userId))
        for (const id of await access.withTargets([...ids], this.#options.now())) withTargets.add(id)
      },
    )
    await withdrawals.each(
      await chosen(this.#asked.all, ([, { signedIn }]) => touched.hasBasis(signedIn.basis)),
      async ([id, { signedIn }]) => {
        if ((await grounds.flawOf(signedIn.basis, signedIn.source.address)) !== undefined)
          this.#asked.forget(id)
        return undefined
      },
    )
  }

  /** Sends the notice again for those signed out before: their proxy may not have known the token yet. */
  remind(): void {
    for (const [token, { withdrawn }] of this.#byToken) {
      if (withdrawn !== undefined) this.#options.onWithdrawn(token, withdrawn)
    }
  }

  /** Yields the bases of all sign-ins. */
  *bases(): Iterable<Basis> {
    for (const { basis, withdrawn } of this.#byToken.values()) if (withdrawn === undefined) yield basis
  }

  async #tellWithdrawn(signedIn: SignedIn, reason: string): Promise<void> {
    const { protocol } = signedIn
    await this.#options.audit.record('auth.withdraw', { ...whoFields(signedIn), protocol, reason })
  }

  /** Handles the answers to a challenge: once, and only on the connection that got it. */
  async #answered(proof: AnswersProof, request: AuthenticateRequest): Promise<AuthenticateAnswer> {
    const { identities } = this.#options
    if (!identities.waitsFor(proof.challenge)) {
      const asked = this.#asked.answered(proof, request.login, request.source)
      return 'signedIn' in asked ? await this.#welcome(asked.signedIn, asked.displayName) : asked
    }
    const answers = proof.answers.map((text) => Secret.of(text))
    const answered = await identities.answer(proof.challenge, ownerOf(request), answers)
    const { outcome, password, request: begun } = answered
    try {
      return begun ? await this.#judged(request, begun, outcome, password) : { result: 'rejected' }
    } finally {
      password?.wipe()
    }
  }

  /** @throws Error for a token that is invalid, expired or another front's */
  get(token: string, protocol: Protocol): SignedIn {
    const signedIn = this.#byToken.get(token)
    if (signedIn && signedIn.protocol !== protocol) {
      throw new Error(`this identity has signed in by ${signedIn.protocol}, not by ${protocol}`)
    }
    if (!signedIn || signedIn.withdrawn !== undefined) throw new Error('this identity is no longer signed in')
    return signedIn
  }

  has(token: string): boolean {
    return this.#byToken.has(token)
  }

  /** Removes an identity, or a challenge that will not be answered. */
  forget(token: string): void {
    const signedIn = this.#byToken.get(token)
    if (signedIn) wipe(signedIn.kept)
    if (signedIn?.factorChallenge !== undefined) this.#options.identities.abandon(signedIn.factorChallenge)
    this.#byToken.delete(token)
    this.#asked.forget(token)
    this.#options.identities.abandon(token)
    this.#options.sshTickets?.end(token)
  }
}

/** Whether a refusal is a failure of the client, for the audit log. */
function isAttempt({ method }: Begun['proof'], isSigned: boolean, reason: Refusal): boolean {
  if (method === 'browser') return reason !== 'method_not_allowed' && reason !== 'no_challenge'
  return method !== 'publickey' || isSigned
}

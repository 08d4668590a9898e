/**
 * Authentication: the one way to sign in, for every front and the API. Every refusal has the same answer and
 * takes the same time, whatever the reason (invariant 7); the reason goes to the audit log.
 */
import { formatLogin, parseLogin } from '../model/login.ts'
import { looksLikeId, nameKey } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { FactorRules, UserRepository } from '../store/store.ts'
import { type AttemptCounter, Attempts, type BegunAttempt, type Rejected, type Who } from './attempts.ts'
import { Authorities } from './authorities.ts'
import { type BrowserRounds, browserRound, isFederated } from './browser-sign-in/round.ts'
import { type Dialogue, Dialogues, MAX_ROUNDS } from './dialogues.ts'
import { BusyError } from './errors.ts'
import { attemptOf, type External } from './external.ts'
import { type HashSeal, openHash, sealHash } from './hashes.ts'
import { Keys } from './keys.ts'
import type { OwnCertificates } from './own-certificate.ts'
import type { PasswordHasher } from './password.ts'
import { isSound, type Place, placeOf, serversOf, splitDomain } from './places.ts'
import type { SecondFactors } from './second-factor/second-factors.ts'
import type { Answered, Begun, Outcome, Proved, SignIn } from './sign-in.ts'
import type { SignedRequest } from './signature.ts'
import { flawOfMethod, flawOfStanding } from './standing.ts'
import { andThen, type Round, type Step } from './steps.ts'

const BUSY: Rejected = { result: 'rejected', reason: 'busy', locks: false }

/** A sign-in that waits for the user's answers. */
interface Waiting extends Dialogue {
  /** Its password is left out. */
  request: Begun
  /** Password of the first round. */
  password: Secret | undefined
  /** Name by which the lock-out counts. */
  counted: string
  round: Round<Proved>
  /** Rounds answered so far. */
  rounds: number
  /** Whether the answer before the round has counted as a failure. */
  hasFailed: boolean
  isHidden: boolean
}

/** Returns what requires a second factor of a user, besides groups and profile. */
type RequiredFactor = (user: User) => Promise<FactorRules | undefined>

/** Replaces the id of a user that does not exist, so that the number of queries is the same. */
const NOBODY: Id = '00000000000000000000000000'

export class Identities {
  readonly #users: UserRepository
  readonly #passwords: PasswordHasher
  readonly #attempts: Attempts
  readonly #now: () => number
  readonly #vault: HashSeal
  readonly #external: External | undefined
  readonly #factors: Pick<SecondFactors, 'after' | 'covered' | 'ask'> | undefined
  readonly #browser: BrowserRounds | undefined
  readonly #dialogues: Dialogues<Waiting>
  readonly #keys: Keys
  /** Authorities for keys, and revocations. */
  authorities = new Authorities()

  /** `now` returns milliseconds since the epoch. Without `external` there are local users only. */
  constructor(
    users: UserRepository,
    passwords: PasswordHasher,
    lockout: AttemptCounter,
    now: () => number,
    vault: HashSeal,
    external?: External,
    factors?: Pick<SecondFactors, 'after' | 'covered' | 'ask'>,
    certificates?: OwnCertificates,
    browser?: BrowserRounds,
  ) {
    this.#users = users
    this.#passwords = passwords
    this.#vault = vault
    this.#attempts = new Attempts(lockout, now)
    this.#now = now
    this.#external = external
    this.#factors = factors
    this.#browser = browser
    this.#keys = new Keys({ external, certificates, authorities: () => this.authorities, now })
    this.#dialogues = new Dialogues(now, (dialogue) => this.#abandoned(dialogue))
  }

  /** `required`: returns what else requires a second factor of the user, or undefined. */
  async authenticate(request: SignIn, required?: RequiredFactor): Promise<Outcome> {
    const { proof, source } = request
    const place = await this.#placeOf(request.user)
    if (proof.method === 'publickey' && !proof.signed) return this.#askForKey(request, place, proof.key)
    if (proof.method === 'browser') return await this.#byBrowser(request, place)
    return await this.#attempted({ user: place.name, source }, async (attempt) =>
      proof.method === 'publickey'
        ? this.#bySignature(request, place, attempt, proof.key, proof.signed!, required)
        : this.#byPassword(request, place, attempt, proof.password, required),
    )
  }

  /** Goes on with a dialogue: once, and for its owner only. Wipes the answers. */
  async answer(challenge: string, owner: string, answers: readonly Secret[]): Promise<Answered> {
    // Before the attempt begins, which others would have to wait for.
    await this.decided(challenge, owner)
    const dialogue = this.#dialogues.take(challenge, owner)
    try {
      if (!dialogue) return { outcome: { result: 'rejected', reason: 'no_challenge', locks: false } }
      const { counted, password, request, round, source } = dialogue
      const outcome = await this.#attempted({ user: counted, source }, async (attempt) => {
        if (attempt === 'locked') return await this.#attempts.reject(attempt, 'locked')
        const step = await round.next(answers)
        // The round has shown that there are servers, or a factor, of this name.
        const rounds = dialogue.rounds + 1
        return await this.#settle(step, attempt, { ...dialogue, rounds, isHidden: false })
      })
      if (outcome.result === 'rejected') round.close()
      if (outcome.result !== 'accepted' && outcome.result !== 'challenge') closeForwarded(request)
      if (outcome.result === 'accepted') return { outcome, request, ...(password && { password }) }
      if (outcome.result !== 'challenge') password?.wipe()
      return { outcome, request }
    } catch (error) {
      dialogue?.password?.wipe()
      if (dialogue) closeForwarded(dialogue.request)
      throw error
    } finally {
      for (const answer of answers) answer.wipe()
    }
  }

  /** Resolves once a person has decided in a browser, or the dialogue has ended; undefined if it waits for no one. */
  decided(challenge: string, owner: string): Promise<void> | undefined {
    return this.#dialogues.peek(challenge, owner)?.round.decided
  }

  /** Whether the id is of a dialogue that waits. */
  waitsFor(challenge: string): boolean {
    return this.#dialogues.has(challenge)
  }

  /** Ends a dialogue that will not be answered. */
  abandon(challenge: string): void {
    this.#dialogues.end(challenge)
  }

  /**
   * Signs in by a one-time ticket. `user`: the name sent with it, or empty. `take` uses the ticket up and
   * returns its owner; it is not called while the name or the address is locked.
   */
  async byTicket(
    who: { user: string; source: string },
    take: () => Promise<Id | undefined>,
  ): Promise<Outcome> {
    return await this.#attempted(who, async (attempt) => {
      if (attempt === 'locked') return await this.#attempts.reject(attempt, 'locked')
      const userId = await take()
      if (userId === undefined) return await this.#attempts.reject(attempt, 'wrong_ticket')
      const user = await this.#users.find(userId)
      return user
        ? await this.#accept(attempt, { user }, who.source)
        : await this.#attempts.reject(attempt, 'unknown_user')
    })
  }

  /** Signs in by a ticket that a server of the place has accepted; `find` finds its person. */
  async byShown(request: Begun, place: Place, find: () => Promise<Step<Proved>>): Promise<Outcome> {
    return await this.#attempted({ user: place.name, source: request.source }, async (attempt) => {
      if (attempt === 'locked') return await this.#attempts.reject(attempt, 'locked')
      const step = await this.#withFactors(await find(), request.source)
      return await this.#settle(step, attempt, this.#dialogueOf(request, place))
    })
  }

  /** Asks a user that has signed in before for a second factor, unless something counts for one. `owner`: see `SignIn`. */
  async further(
    proved: Proved,
    { source, owner, firstFactor }: { source: string; owner: string; firstFactor: string },
    rules: FactorRules,
  ): Promise<Outcome> {
    const factors = this.#factors
    const name = proved.user.userName
    const place = { address: source, firstFactor }
    const covered = await factors?.covered(proved, place, rules)
    if (covered) return { result: 'accepted', ...covered }
    return await this.#attempted({ user: name, source }, async (attempt) => {
      if (attempt === 'locked' || !factors) return await this.#attempts.reject(attempt, 'locked')
      const step = await factors.ask(proved, place, rules)
      const proof = { method: 'second_factor' } as const
      const request = { user: name, login: name, source, owner, proof }
      return await this.#settle(step, attempt, this.#dialogueOf(request, { name, userName: name }))
    })
  }

  /**
   * Signs in a guest, who is no user, by the invitation that `take` uses up. Returns the guest or the reason.
   */
  async byInvitation<Guest extends object>(
    who: { user: string; source: string },
    take: () => Promise<Guest | undefined>,
  ): Promise<Guest | Extract<Outcome, { result: 'rejected' }>> {
    return await this.#attempted(who, async (attempt) => {
      const guest = attempt === 'locked' ? undefined : await take()
      if (!guest)
        return await this.#attempts.reject(attempt, attempt === 'locked' ? 'locked' : 'wrong_ticket')
      // Neither a failure nor a success: it proves nothing about other clients at this address.
      await this.#attempts.cancel(attempt)
      return guest
    })
  }

  /**
   * Sets a user's password.
   * @throws RangeError if it is empty or too long, BusyError, MissingReferenceError
   */
  async setPassword(userId: Id, password: Secret): Promise<void> {
    const hash = await this.#passwords.hash(password)
    await this.#users.setPasswordHash(userId, sealHash(this.#vault, userId, hash))
  }

  /** Whether a sign-in as this user from this address is refused whatever its proof. */
  async isLocked({ user, source }: Pick<SignIn, 'user' | 'source'>): Promise<boolean> {
    return await this.#attempts.isLocked({ user: (await this.#placeOf(user)).name, source })
  }

  /** Runs one attempt, in its turn. */
  async #attempted<T>(who: Who, run: (attempt: BegunAttempt) => Promise<T>): Promise<T | Rejected> {
    const attempt = await this.#attempts.begin(who)
    if (attempt === 'busy') return BUSY
    try {
      return await run(attempt)
    } catch (error) {
      await this.#attempts.cancel(attempt)
      if (error instanceof BusyError) return BUSY
      throw error
    } finally {
      this.#attempts.goOn(who.source)
    }
  }

  async #placeOf(user: string): Promise<Place> {
    if (this.#external) return await placeOf(this.#external.store, user)
    const { name } = splitDomain(user)
    const local = looksLikeId(name) ? undefined : await this.#users.find(name)
    return { ...(local && { local }), userName: name, name }
  }

  async #byPassword(
    request: SignIn,
    place: Place,
    attempt: BegunAttempt,
    text: string,
    required?: RequiredFactor,
  ): Promise<Outcome> {
    const password = Secret.of(text)
    let kept: Secret | undefined = Secret.of(text)
    try {
      const { local: user } = place
      const { passwordHash: sealed } = await this.#users.secretsOf(user?.id ?? NOBODY)
      if (attempt === 'locked') {
        // Uses up no turn and asks no server, and takes the same time.
        await this.#passwords.pretend(request.source)
        await this.#external?.pretend()
        return await this.#attempts.reject(attempt, 'locked')
      }
      const passwordHash = user && sealed && openHash(this.#vault, user.id, sealed)
      // Always computed, so that the time is the same.
      const matches = await this.#passwords.verify(passwordHash, password, request.source)
      const flaw =
        flawOfMethod(user, 'local_password', request.source, this.#now()) ??
        (matches ? undefined : 'wrong_password')
      const first =
        user && !flaw
          ? await this.#byLocal(user, { sealed, passwordHash, password })
          : await this.#byServers(place, request, password)
      const step = first && (await this.#withFactors(first, request.source, required))
      if (step && isOfBrowser(place)) {
        // Leaves out the password, which was not checked: the browser alone proves the person.
        const inBrowser = { ...request, proof: { method: 'browser' } as const }
        return await this.#settle(step, attempt, this.#dialogueOf(inBrowser, place))
      }
      if (step) {
        const outcome = await this.#settle(step, attempt, this.#dialogueOf(request, place, kept))
        if (outcome.result === 'challenge') kept = undefined
        return outcome
      }
      await this.#external?.pretend()
      return await this.#attempts.reject(attempt, flaw ?? 'unknown_user')
    } finally {
      password.wipe()
      kept?.wipe()
    }
  }

  async #byLocal(
    user: User,
    proof: { sealed: Uint8Array | undefined; passwordHash: string | undefined; password: Secret },
  ): Promise<Step<Proved>> {
    const { sealed, passwordHash, password } = proof
    if (sealed && passwordHash !== undefined && this.#passwords.needsRehash(passwordHash)) {
      await this.#renewHash(user.id, sealed, password)
    }
    // The password may have been replaced while the hash was computed.
    const now = await this.#users.find(user.id)
    if (now?.secretRevision !== user.secretRevision) return { result: 'rejected', reason: 'wrong_password' }
    return { result: 'accepted', value: { user } }
  }

  /** Asks the servers of a local user's second factor, and then for the one of the bastion's own. */
  async #withFactors(first: Step<Proved>, source: string, required?: RequiredFactor): Promise<Step<Proved>> {
    const factors = this.#factors
    const proved = await andThen(first, (value) => this.#bySecond(value, source))
    if (!factors) return proved
    return await andThen(proved, async (value) => factors.after(value, source, await required?.(value.user)))
  }

  /** A person's were asked by their domain. */
  async #bySecond(proved: Proved, source: string): Promise<Step<Proved>> {
    const { secondaryAuths = [] } = proved.user
    if (secondaryAuths.length === 0) return { result: 'accepted', value: proved }
    if (this.#external) return await this.#external.afterLocal(proved, source)
    return { result: 'unavailable', server: secondaryAuths.join(', '), reason: 'no server can be asked' }
  }

  /** Asks the servers of the name; returns undefined if there are none, or none may be asked. */
  async #byServers(place: Place, request: SignIn, password: Secret): Promise<Step<Proved> | undefined> {
    const { local, domain, userName } = place
    if (!this.#external) return undefined
    const { source } = request
    if (isOfBrowser(place)) return this.#browserStep(request, place)
    if (domain)
      return isSound(userName)
        ? await this.#external.byDomain(domain, attemptOf(userName, source), password)
        : undefined
    const names = local ? serversOf(local) : []
    if (!local || names.length === 0 || flawOfStanding(local, source, this.#now())) return undefined
    // Servers may tell spellings apart that are one name here: the typed one could be another person's there.
    return await this.#external.byNames(local, names, attemptOf(local.userName, source), password)
  }

  /** Begins with a browser, where the name says so: nothing is proved yet, and nothing has failed. */
  async #byBrowser(request: SignIn, place: Place): Promise<Outcome> {
    const step = this.#browserStep(request, place)
    if (!step) return { result: 'rejected', reason: 'method_not_allowed', locks: false }
    return await this.#attempted({ user: place.name, source: request.source }, (attempt) =>
      this.#settle(step, attempt, this.#dialogueOf(request, place)),
    )
  }

  /** Waits for a person of a federated domain that the name has spelled out: a bare name may be a local user's. */
  #browserStep({ source, login, waitsBy }: SignIn, place: Place): Step<Proved> | undefined {
    const { domain, name, userName, isByDefault } = place
    if (!this.#browser || !domain || !isOfBrowser(place) || isByDefault || waitsBy === undefined)
      return undefined
    if (!isSound(userName)) return undefined
    const parsed = parseLogin(login)
    const target = 'malformed' in parsed ? undefined : parsed.target
    return browserRound(this.#browser, {
      ...{ domain, name, source, protocol: waitsBy },
      ...(target !== undefined && { target: formatLogin({ user: '', target }).slice(1) }),
    })
  }

  /** Ends the attempt, or the round of it. */
  async #settle(
    step: Step<Proved>,
    attempt: BegunAttempt,
    dialogue: Omit<Waiting, 'round'>,
  ): Promise<Outcome> {
    switch (step.result) {
      case 'accepted':
        return await this.#accept(attempt, step.value, dialogue.source)
      case 'rejected':
        return await this.#attempts.reject(attempt, step.reason)
      case 'unavailable': {
        await this.#attempts.cancel(attempt)
        const { server, reason } = step
        return { result: 'unavailable', server, reason, isHidden: dialogue.isHidden }
      }
      case 'challenge': {
        const { round } = step
        if (MAX_ROUNDS <= dialogue.rounds) {
          round.close()
          return await this.#attempts.reject(attempt, 'too_many_rounds')
        }
        // Not held while a person types: each answer is an attempt.
        const failed = round.isAgain && (await this.#attempts.reject(attempt, 'wrong_password'))
        if (failed?.locks) {
          round.close()
          return failed
        }
        if (!failed) await this.#attempts.cancel(attempt)
        const challenge = this.#dialogues.open({ ...dialogue, round, hasFailed: failed !== undefined })
        const { message, uri, link, hint, form, prompts } = round
        return {
          result: 'challenge',
          challenge,
          message,
          ...(uri !== undefined && { uri }),
          ...(link !== undefined && { link }),
          ...(hint !== undefined && { hint }),
          ...(form && { form }),
          ...(failed && { failure: failed.reason }),
          prompts,
        }
      }
    }
  }

  #dialogueOf(request: Begun, { domain, name }: Place, password?: Secret): Omit<Waiting, 'round'> {
    const { owner, proof, source } = request
    return {
      name: nameKey(name),
      counted: name,
      source,
      owner: owner ?? source,
      request: 'password' in proof ? { ...request, proof: { ...proof, password: '' } } : request,
      password,
      rounds: 0,
      hasFailed: false,
      isHidden: domain === undefined,
    }
  }

  /** One who has answered and leaves before the verdict may have been told that the answer was wrong: that counts. */
  #abandoned({ counted, password, request, source, round, rounds, hasFailed }: Waiting): void {
    round.close()
    password?.wipe()
    closeForwarded(request)
    if (rounds === 0 || hasFailed) return
    const who = { user: counted, source }
    this.#attempted(who, (attempt) => this.#attempts.reject(attempt, 'wrong_password')).catch(() => undefined)
  }

  /** Left to another sign-in if the broker is busy. */
  async #renewHash(userId: Id, before: Uint8Array, password: Secret): Promise<void> {
    try {
      const hash = await this.#passwords.hash(password)
      await this.#users.renewPasswordHash(userId, before, sealHash(this.#vault, userId, hash))
    } catch (error) {
      if (!(error instanceof BusyError)) throw error
    }
  }

  async #bySignature(
    request: SignIn,
    place: Place,
    attempt: BegunAttempt,
    key: Uint8Array,
    signed: Pick<SignedRequest, 'data' | 'signature'>,
    required?: RequiredFactor,
  ): Promise<Outcome> {
    const first = await this.#keys.prove(request, place, attempt === 'locked', key, signed)
    const step = await this.#withFactors(first, request.source, required)
    return await this.#settle(step, attempt, this.#dialogueOf(request, place))
  }

  /** Answers a query about a key. An agent offers all its keys: one of another user is no failure that counts. */
  async #askForKey(request: SignIn, place: Place, key: Uint8Array): Promise<Outcome> {
    const locked = await this.#attempts.isLocked({ user: place.name, source: request.source })
    const flaw = locked ? 'locked' : await this.#keys.flawOfQuery(request, place, key)
    return flaw ? { result: 'rejected', reason: flaw, locks: false } : { result: 'key_acceptable' }
  }

  /** Accepts unless the user may not act at all. */
  async #accept(attempt: BegunAttempt, proved: Proved, source: string): Promise<Outcome> {
    const flaw = flawOfStanding(proved.user, source, this.#now())
    if (flaw) return await this.#attempts.reject(attempt, flaw)
    if (!(await this.#attempts.accept(attempt))) return await this.#attempts.reject(attempt, 'locked')
    await this.#users.noteSignIn(proved.user.id, this.#now())
    return { result: 'accepted', ...proved }
  }
}

const isOfBrowser = ({ domain }: Place): boolean => domain !== undefined && isFederated(domain)

function closeForwarded({ proof }: Begun): void {
  if ('forwarded' in proof) proof.forwarded?.close()
}

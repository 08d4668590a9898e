/**
 * Authentication: the one way to sign in, for every front and the API. Every refusal has the same answer and
 * takes the same time, whatever the reason (invariant 7); the reason goes to the audit log.
 */
import { looksLikeId, nameKey } from '../model/names.ts'
import { networkOf } from '../model/networks.ts'
import type { Id, User, UserAuth } from '../model/objects.ts'
import { Secret } from '../model/secret.ts'
import type { UserRepository } from '../store/store.ts'
import { Authorities, type AuthorityFlaw } from './authorities.ts'
import { type OfferedKey, readOfferedKey } from './certificate.ts'
import { BusyError } from './errors.ts'
import { type HashSeal, openHash, sealHash } from './hashes.ts'
import type { Attempt } from './lockout.ts'
import type { PasswordHasher } from './password.ts'
import { isKeyOf } from './public-key.ts'
import { type SignedRequest, verifySignedRequest } from './signature.ts'
import { flawOfStanding, type StandingFlaw } from './standing.ts'

export type Proof =
  | { method: 'password' | 'keyboard-interactive'; password: string }
  | {
      method: 'publickey'
      /** Blob of the key or certificate, as offered. */
      key: Uint8Array
      /** Absent if the client only queries whether the key is acceptable. */
      signed?: Pick<SignedRequest, 'data' | 'signature'>
    }

export interface SignIn {
  /** The user's name: USER of the login string. */
  user: string
  /** The user-name field as the client sent it, whole: a signature covers it. */
  login: string
  /** The client's address. */
  source: string
  proof: Proof
}

/** Why a sign-in was refused: for the audit log, never for the client. */
export type Refusal =
  | 'used_signature'
  | 'unknown_user'
  | 'locked'
  | 'method_not_allowed'
  | 'wrong_password'
  | 'wrong_ticket'
  | 'unknown_key'
  | 'bad_signature'
  | 'busy'
  | AuthorityFlaw
  | StandingFlaw

export type Outcome =
  | { result: 'accepted'; user: User }
  | { result: 'key_acceptable' }
  /** `locks`: this failure starts a lock-out, which has its own event. */
  | { result: 'rejected'; reason: Refusal; locks: boolean }

/**
 * Limit of sign-ins that wait for others of the same name or address to end; tools with many forks cause
 * such.
 */
export const MAX_WAITING_ATTEMPTS = 256
/** Limit of such sign-ins per network. */
export const MAX_WAITING_OF_NETWORK = 128

/**
 * Milliseconds after which a sign-in that waits asks again: the attempt that it waits for may be one of another
 * process.
 */
const WAIT_MS = 250

type Awaitable<T> = T | Promise<T>

/** Counts attempts and failures: see `Lockout` and `SharedLockout`. */
export interface AttemptCounter {
  begin(user: string, source: string, now: number): Awaitable<Attempt | 'locked' | 'wait'>
  isLocked(user: string, source: string, now: number): Awaitable<boolean>
  fail(attempt: Attempt, now: number): Awaitable<boolean>
  succeed(attempt: Attempt): Awaitable<void>
  cancel(attempt: Attempt): Awaitable<void>
}

/** Replaces the id of a user that does not exist, so that the number of queries is the same. */
const NOBODY: Id = '00000000000000000000000000'

export class Identities {
  readonly #users: UserRepository
  readonly #passwords: PasswordHasher
  readonly #lockout: AttemptCounter
  readonly #now: () => number
  readonly #vault: HashSeal
  /** Authorities for keys, and revocations. */
  authorities = new Authorities()
  /** Sign-ins that wait for an attempt of their network to end. */
  readonly #waiting = new Map<string, (() => void)[]>()

  /** `now` returns milliseconds since the epoch. */
  constructor(
    users: UserRepository,
    passwords: PasswordHasher,
    lockout: AttemptCounter,
    now: () => number,
    vault: HashSeal,
  ) {
    this.#users = users
    this.#passwords = passwords
    this.#vault = vault
    this.#lockout = lockout
    this.#now = now
  }

  async authenticate(request: SignIn): Promise<Outcome> {
    const { proof } = request
    if (proof.method === 'publickey' && !proof.signed) return this.#askForKey(request, proof.key)
    const attempt = await this.#begin(request)
    if (attempt === 'busy') return { result: 'rejected', reason: 'busy', locks: false }
    try {
      if (proof.method !== 'publickey') return await this.#byPassword(request, attempt, proof.password)
      return await this.#bySignature(request, attempt, proof.key, proof.signed!)
    } catch (error) {
      if (attempt !== 'locked') await this.#lockout.cancel(attempt)
      if (error instanceof BusyError) return { result: 'rejected', reason: 'busy', locks: false }
      throw error
    } finally {
      this.#goOn(request.source)
    }
  }

  /**
   * Signs in by a one-time ticket. `user`: the name sent with it, or empty. `take` uses the ticket up and
   * returns its owner; it is not called while the name or the address is locked.
   */
  async byTicket(
    who: { user: string; source: string },
    take: () => Promise<Id | undefined>,
  ): Promise<Outcome> {
    const attempt = await this.#begin(who)
    if (attempt === 'busy') return { result: 'rejected', reason: 'busy', locks: false }
    try {
      if (attempt === 'locked') return await this.#reject(attempt, 'locked')
      const userId = await take()
      if (userId === undefined) return await this.#reject(attempt, 'wrong_ticket')
      const user = await this.#users.find(userId)
      const flaw = user && flawOfStanding(user, who.source, this.#now())
      return await (!user || flaw
        ? this.#reject(attempt, flaw ?? 'unknown_user')
        : this.#accept(attempt, user))
    } catch (error) {
      if (attempt !== 'locked') await this.#lockout.cancel(attempt)
      throw error
    } finally {
      this.#goOn(who.source)
    }
  }

  /**
   * Signs in a guest, who is no user, by the invitation that `take` uses up. Returns the guest or the reason.
   */
  async byInvitation<Guest extends object>(
    who: { user: string; source: string },
    take: () => Promise<Guest | undefined>,
  ): Promise<Guest | Extract<Outcome, { result: 'rejected' }>> {
    const attempt = await this.#begin(who)
    if (attempt === 'busy') return { result: 'rejected', reason: 'busy', locks: false }
    try {
      const guest = attempt === 'locked' ? undefined : await take()
      if (attempt === 'locked' || !guest) {
        return await this.#reject(attempt, attempt === 'locked' ? 'locked' : 'wrong_ticket')
      }
      // Neither a failure nor a success: it proves nothing about other clients at this address.
      await this.#lockout.cancel(attempt)
      return guest
    } catch (error) {
      if (attempt !== 'locked') await this.#lockout.cancel(attempt)
      throw error
    } finally {
      this.#goOn(who.source)
    }
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
    return await this.#lockout.isLocked(nameKey(user), source, this.#now())
  }

  /** Wakes the sign-ins that waited for an attempt to end. */
  #goOn(source: string): void {
    const network = networkOf(source)
    const waiting = this.#waiting.get(network) ?? []
    this.#waiting.delete(network)
    for (const goOn of waiting) goOn()
  }

  async #begin(request: Pick<SignIn, 'user' | 'source'>): Promise<Attempt | 'locked' | 'busy'> {
    for (;;) {
      const attempt = await this.#lockout.begin(nameKey(request.user), request.source, this.#now())
      if (attempt !== 'wait') return attempt
      const network = networkOf(request.source)
      const own = this.#waiting.get(network) ?? []
      const all = [...this.#waiting.values()].reduce((sum, { length }) => sum + length, 0)
      if (MAX_WAITING_OF_NETWORK <= own.length || MAX_WAITING_ATTEMPTS <= all) return 'busy'
      this.#waiting.set(network, own)
      await this.#turn(network, own)
    }
  }

  /** Resolves when an attempt of the network has ended here, or after a while. */
  async #turn(network: string, waiting: (() => void)[]): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    waiting.push(resolve)
    const timer = setTimeout(resolve, WAIT_MS)
    await promise
    clearTimeout(timer)
    const index = waiting.indexOf(resolve)
    if (index >= 0) waiting.splice(index, 1)
    if (waiting.length === 0 && this.#waiting.get(network) === waiting) this.#waiting.delete(network)
  }

  async #byPassword(request: SignIn, attempt: Attempt | 'locked', text: string): Promise<Outcome> {
    const password = Secret.of(text)
    try {
      const user = await this.#find(request.user)
      const { passwordHash: sealed } = await this.#users.secretsOf(user?.id ?? NOBODY)
      if (attempt === 'locked') {
        // Uses up no turn, and takes the same time.
        await this.#passwords.pretend(request.source)
        return await this.#reject(attempt, 'locked')
      }
      const passwordHash = user && sealed && openHash(this.#vault, user.id, sealed)
      // Always computed, so that the time is the same.
      const matches = await this.#passwords.verify(passwordHash, password, request.source)
      const flaw = this.#flawOf(user, 'local_password', request) ?? (matches ? undefined : 'wrong_password')
      if (!user || flaw) return await this.#reject(attempt, flaw ?? 'unknown_user')
      if (sealed && passwordHash !== undefined && this.#passwords.needsRehash(passwordHash)) {
        await this.#renewHash(user.id, sealed, password)
      }
      // The password may have been replaced while the hash was computed.
      const now = await this.#users.find(user.id)
      if (now?.secretRevision !== user.secretRevision) return await this.#reject(attempt, 'wrong_password')
      return await this.#accept(attempt, user)
    } finally {
      password.wipe()
    }
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
    attempt: Attempt | 'locked',
    key: Uint8Array,
    signed: Pick<SignedRequest, 'data' | 'signature'>,
  ): Promise<Outcome> {
    // Looks up the key that signed, and verifies the signature even for an unknown user.
    const offered = readOfferedKey(key)
    const signature =
      offered && verifySignedRequest({ ...signed, login: request.login, offered: key, key: offered.key })
    const user = await this.#find(request.user)
    let flaw = this.#flawOfKey(user, offered, request, key) ?? (signature ? undefined : 'bad_signature')
    if (!flaw && offered?.certificate && signature) {
      flaw = this.authorities.flawOfSignature(offered.certificate, signature)
    }
    return await (!user || flaw ? this.#reject(attempt, flaw ?? 'unknown_user') : this.#accept(attempt, user))
  }

  /**
   * Answers a query about a key. An agent offers all its keys, so a key of another user is no failure that
   * counts.
   */
  async #askForKey(request: SignIn, key: Uint8Array): Promise<Outcome> {
    const user = await this.#find(request.user)
    const locked = await this.isLocked(request)
    const flaw = locked ? 'locked' : this.#flawOfKey(user, readOfferedKey(key), request, key)
    return flaw ? { result: 'rejected', reason: flaw, locks: false } : { result: 'key_acceptable' }
  }

  /** Finds by name only: an id is not accepted as a name. */
  async #find(name: string): Promise<User | undefined> {
    return looksLikeId(name) ? undefined : this.#users.find(name)
  }

  #flawOf(user: User | undefined, method: UserAuth, request: SignIn): Refusal | undefined {
    if (!user) return 'unknown_user'
    if (!user.userAuths.includes(method)) return 'method_not_allowed'
    return flawOfStanding(user, request.source, this.#now())
  }

  /** Checks the key: a plain one must be listed for the user; a certificate needs a valid authority. */
  #flawOfKey(
    user: User | undefined,
    offered: OfferedKey | undefined,
    request: SignIn,
    key: Uint8Array,
  ): Refusal | undefined {
    // Checked for unknown users too: verifying a certificate takes time, which must not reveal them.
    const { userName } = user ?? { userName: request.user }
    const use = { user: userName, source: request.source, now: this.#now() }
    const ofAuthority = offered && this.authorities.flawOf(offered, use)
    const flaw = this.#flawOf(user, 'local_sshkey', request)
    if (!user || flaw) return flaw
    if (!offered || (!offered.certificate && !isKeyOf(user.sshPublicKeys, key))) return 'unknown_key'
    return ofAuthority
  }

  async #accept(attempt: Attempt | 'locked', user: User): Promise<Outcome> {
    if (attempt === 'locked') return await this.#reject(attempt, 'locked')
    await this.#lockout.succeed(attempt)
    return { result: 'accepted', user }
  }

  async #reject(
    attempt: Attempt | 'locked',
    reason: Refusal,
  ): Promise<Extract<Outcome, { result: 'rejected' }>> {
    if (attempt === 'locked') return { result: 'rejected', reason: 'locked', locks: false }
    return { result: 'rejected', reason, locks: await this.#lockout.fail(attempt, this.#now()) }
  }
}

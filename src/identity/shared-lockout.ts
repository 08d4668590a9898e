/**
 * A lock-out whose failures lie in the store, so that it holds over a restart and over all processes on one
 * database. A process counts its own attempts in progress in memory, and they wait for one another there;
 * while the store cannot be read, memory alone counts, and a failure that it does not take is added to its own.
 *
 * A sign-in whose name and network have next to no failures writes nothing and reads once. Nearer to a limit
 * the attempt takes a place in the store first. So guesses at the same moment by way of several processes exceed
 * the limit of a pair by a tenth of it for each of them, and that of an address by half of it.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import type { FailuresOf, LockoutKeys, LockoutLimits, LockoutRepository } from '../store/store.ts'
import { type Attempt, attemptOf, LOCKOUT_LIMITS, Lockout } from './lockout.ts'

/** Milliseconds for which an attempt counts whose process has died. */
const ATTEMPT_MS = 120_000
/** Parts of the limits up to which failures, and attempts of this process, take no place in the store. */
const UNWRITTEN_OF_PAIR = 0.1
const UNWRITTEN_OF_ADDRESS = 0.5

export interface SharedAttempt extends Attempt {
  keys: LockoutKeys
  /** Id of its place in the store, if it has one. */
  place?: Id
  /** Whether a success has failures of the pair to clear. */
  hasFailures?: boolean
}

export class SharedLockout {
  readonly #rows: LockoutRepository
  readonly #limits: LockoutLimits
  readonly #local: Lockout

  constructor(rows: LockoutRepository, limits: LockoutLimits = LOCKOUT_LIMITS) {
    this.#rows = rows
    this.#limits = limits
    this.#local = new Lockout(limits)
  }

  /**
   * Returns `locked` to refuse, or `wait` if attempts in progress, here or in another process, could still
   * lock: call again soon. `user` is the name's key.
   */
  async begin(user: string, source: string, now: number): Promise<SharedAttempt | 'locked' | 'wait'> {
    const keys = keysOf(user, attemptOf(user, source))
    const known = await this.#learn(user, source, keys, now)
    const begun = this.#local.begin(user, source, now)
    if (typeof begun === 'string') return begun
    const attempt: SharedAttempt = { ...begun, keys, hasFailures: known?.pair !== undefined }
    if (!known || !this.#isNearLimit(attempt, known)) return attempt
    const place = await orNothing(this.#rows.reserve(keys, now, now + ATTEMPT_MS, this.#limits))
    // Without the store, memory alone counts.
    if (place === NOTHING) return attempt
    if (place !== undefined) return { ...attempt, place }
    this.#local.cancel(begun)
    await this.#learn(user, source, keys, now)
    return this.#local.isLocked(user, source, now) ? 'locked' : 'wait'
  }

  /** Whether an attempt would be refused now; counts nothing. */
  async isLocked(user: string, source: string, now: number): Promise<boolean> {
    await this.#learn(user, source, keysOf(user, attemptOf(user, source)), now)
    return this.#local.isLocked(user, source, now)
  }

  /** Returns true if this failure caused a lock. */
  async fail(attempt: SharedAttempt, now: number): Promise<boolean> {
    const counted = await orNothing(this.#rows.fail(attempt.keys, attempt.place, now, this.#limits))
    if (counted === NOTHING) return this.#local.fail(attempt, now)
    this.#local.cancel(attempt)
    const locks = this.#local.learn(attempt, counted, now)
    const { pairFailures, addressFailures } = this.#limits
    return locks || counted.pair.failures === pairFailures || counted.address.failures === addressFailures
  }

  /** Clears the pair's failures; other names' failures from the address stay. */
  async succeed(attempt: SharedAttempt): Promise<void> {
    const { keys, place, hasFailures } = attempt
    if (place !== undefined || hasFailures) {
      await orNothing(this.#rows.end(place, hasFailures ? keys.pair : undefined))
    }
    this.#local.succeed(attempt)
  }

  /** Ends an attempt without a result: the broker was too busy to decide. */
  async cancel(attempt: SharedAttempt): Promise<void> {
    if (attempt.place !== undefined) await orNothing(this.#rows.end(attempt.place))
    this.#local.cancel(attempt)
  }

  /** Returns what the store knows, or undefined if it cannot be reached. */
  async #learn(
    user: string,
    source: string,
    keys: LockoutKeys,
    now: number,
  ): Promise<FailuresOf | undefined> {
    const known = await orNothing(this.#rows.find(keys, now))
    if (known === NOTHING) return undefined
    this.#local.learn(attemptOf(user, source), known, now)
    return known
  }

  #isNearLimit(attempt: Attempt, known: FailuresOf): boolean {
    const { pair, address } = this.#local.pending(attempt)
    const { pairFailures, addressFailures } = this.#limits
    return (
      UNWRITTEN_OF_PAIR * pairFailures < (known.pair?.failures ?? 0) + pair ||
      UNWRITTEN_OF_ADDRESS * addressFailures < (known.address?.failures ?? 0) + address
    )
  }
}

const NOTHING = Symbol('the store cannot be reached')

/** A sign-in that the store keeps from its counting goes on by memory; its other queries report the fault. */
function orNothing<T>(work: Promise<T>): Promise<T | typeof NOTHING> {
  return work.catch((): typeof NOTHING => NOTHING)
}

/** Returns keys of one length, however long the name. */
function keysOf(user: string, { pair, address }: Attempt): LockoutKeys {
  return { pair: hash('pair', pair), address: hash('address', address), name: hash('name', user) }
}

function hash(kind: string, text: string): Buffer {
  return createHash('sha256').update(`${kind} ${text}`).digest()
}

/** Returns a test for the names of users: whether one is locked out now, from one network at least. */
export async function lockedOut(
  rows: Pick<LockoutRepository, 'lockedNames'>,
  now: number,
): Promise<(userName: string) => boolean> {
  const locked = new Set((await rows.lockedNames(now)).map((name) => Buffer.from(name).toString('hex')))
  return (userName) => locked.size > 0 && locked.has(hash('name', nameKey(userName)).toString('hex'))
}

/** Lets the user sign in again from wherever it is locked out; other names' failures from there stay. */
export function forgive(rows: Pick<LockoutRepository, 'forgive'>, userName: string): Promise<void> {
  return rows.forgive(hash('name', nameKey(userName)))
}

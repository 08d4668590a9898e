/**
 * Locks out after failures, counted per pair of user name and source address and per source address; never
 * per name alone, so that no client can lock out a user elsewhere. Pure: the caller supplies the time, in
 * milliseconds.
 *
 * Attempts in progress count too, so that simultaneous ones do not evade the limit: an attempt whose failure
 * could exceed it waits until another has ended.
 */
import { networkOf } from '../model/networks.ts'
import type { Failures, FailuresOf, LockoutLimits } from '../store/store.ts'

export const LOCKOUT_LIMITS: LockoutLimits = {
  pairFailures: 10,
  addressFailures: 50,
  windowMs: 300_000,
  lockMs: 300_000,
  maxEntries: 10_000,
}

/** One attempt to sign in, ended by exactly one of `fail`, `succeed`, `cancel`. */
export interface Attempt {
  pair: string
  address: string
}

export class Lockout {
  readonly #pairs: Table
  readonly #addresses: Table

  constructor(limits: LockoutLimits = LOCKOUT_LIMITS) {
    this.#pairs = new Table(limits.pairFailures, limits)
    this.#addresses = new Table(limits.addressFailures, limits)
  }

  /**
   * Returns `locked` to refuse, or `wait` if attempts in progress could still lock: call again when one has
   * ended. `user` is the name's key.
   */
  begin(user: string, source: string, now: number): Attempt | 'locked' | 'wait' {
    const { pair, address } = attemptOf(user, source)
    if (this.isLocked(user, source, now)) return 'locked'
    if (this.#pairs.isFull(pair) || this.#addresses.isFull(address)) return 'wait'
    this.#pairs.begin(pair, now)
    this.#addresses.begin(address, now)
    return { pair, address }
  }

  /**
   * Replaces the failures of both by what the store knows; attempts in progress stay, and failures that were counted
   * here alone (`fail`) are added. Returns true if the sum caused a lock.
   */
  learn({ pair, address }: Attempt, known: FailuresOf, now: number): boolean {
    const locked = this.#pairs.learn(pair, known.pair, now)
    return this.#addresses.learn(address, known.address, now) || locked
  }

  /** Returns the numbers of attempts in progress. */
  pending({ pair, address }: Attempt): { pair: number; address: number } {
    return { pair: this.#pairs.pending(pair), address: this.#addresses.pending(address) }
  }

  /** Whether an attempt would be refused now; counts nothing. */
  isLocked(user: string, source: string, now: number): boolean {
    const { pair, address } = attemptOf(user, source)
    return this.#pairs.isLocked(pair, now) || this.#addresses.isLocked(address, now)
  }

  /** Returns true if this failure caused a lock. */
  fail({ pair, address }: Attempt, now: number): boolean {
    const locked = this.#pairs.fail(pair, now)
    return this.#addresses.fail(address, now) || locked
  }

  /** Clears the pair's failures; other names' failures from the address stay. */
  succeed({ pair, address }: Attempt): void {
    this.#pairs.end(pair)
    this.#pairs.forgive(pair)
    this.#addresses.end(address)
  }

  /** Ends an attempt without a result: the broker was too busy to decide. */
  cancel({ pair, address }: Attempt): void {
    this.#pairs.end(pair)
    this.#addresses.end(address)
  }

  get size(): { pairs: number; addresses: number } {
    return { pairs: this.#pairs.size, addresses: this.#addresses.size }
  }
}

/** Returns the keys by which an attempt is counted. `user` is the name's key. */
export function attemptOf(user: string, source: string): Attempt {
  const address = networkOf(source)
  return { pair: `${address} ${user}`, address }
}

interface Entry extends Failures {
  /** Number of attempts in progress. */
  pending: number
  /** Failures among `failures` that the store does not have. */
  own: number
}

const NONE: Failures = { failures: 0, since: 0, lockedUntil: 0 }

class Table {
  readonly #entries = new Map<string, Entry>()
  readonly #limit: number
  readonly #limits: LockoutLimits

  constructor(limit: number, limits: LockoutLimits) {
    this.#limit = limit
    this.#limits = limits
  }

  get size(): number {
    return this.#entries.size
  }

  isLocked(key: string, now: number): boolean {
    const entry = this.#current(key, now)
    return entry !== undefined && now < entry.lockedUntil
  }

  /** Whether the attempts in progress would lock if all failed. */
  isFull(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#limit <= entry.failures + entry.pending
  }

  begin(key: string, now: number): void {
    const entry = this.#current(key, now) ?? { ...NONE, pending: 0, own: 0, since: now }
    entry.pending++
    this.#put(key, entry)
  }

  learn(key: string, known: Failures = NONE, now: number): boolean {
    const entry = this.#current(key, now)
    if (!entry && known.failures === 0) return false
    const { pending = 0, own = 0 } = entry ?? {}
    const learnt: Entry = { ...known, pending, own }
    let locks = false
    if (entry && own > 0) {
      learnt.failures += own
      learnt.since = entry.since
      learnt.lockedUntil = Math.max(known.lockedUntil, entry.lockedUntil)
      locks = this.#limit <= learnt.failures && learnt.lockedUntil <= now
      if (locks) learnt.lockedUntil = now + this.#limits.lockMs
    }
    this.#put(key, learnt)
    this.#forgetIdle(key, learnt)
    return locks
  }

  pending(key: string): number {
    return this.#entries.get(key)?.pending ?? 0
  }

  #put(key: string, entry: Entry): void {
    // A Map keeps the order of insertion: the first entry is the one idle longest.
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#limits.maxEntries < this.#entries.size) {
      const [oldest] = this.#entries.keys()
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
  }

  /** Ends an attempt; removes an entry with nothing to remember. */
  end(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.pending--
    this.#forgetIdle(key, entry)
  }

  fail(key: string, now: number): boolean {
    const entry = this.#current(key, now)
    if (!entry) return false
    entry.pending--
    if (entry.failures === 0) entry.since = now
    entry.failures++
    entry.own++
    if (entry.failures < this.#limit || now < entry.lockedUntil) return false
    entry.lockedUntil = now + this.#limits.lockMs
    return true
  }

  forgive(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.failures = 0
    entry.own = 0
    entry.lockedUntil = 0
    this.#forgetIdle(key, entry)
  }

  #forgetIdle(key: string, entry: Entry): void {
    if (entry.pending <= 0 && entry.failures === 0) this.#entries.delete(key)
  }

  /** Returns the entry, its failures cleared if their time has expired. */
  #current(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry || entry.failures === 0) return entry
    const end = entry.lockedUntil === 0 ? entry.since + this.#limits.windowMs : entry.lockedUntil
    if (end <= now) this.forgive(key)
    return this.#entries.get(key)
  }
}

/**
 * Lock-out after failures: counted for each pair of user name and source address, and for each source address.
 * Never for a name alone, so that nobody can lock out somebody else from their own place. Pure: the time is
 * handed in, in milliseconds.
 *
 * Attempts that are under way count too, so that many at the same time are no way around: one that could be a
 * failure too many has to wait until another has ended.
 */
import { networkOf } from '../model/networks.ts'

export interface LockoutLimits {
  /** Failures of one name from one address that lock the pair. */
  pairFailures: number
  /** Failures from one address, whatever the names, that lock the address. */
  addressFailures: number
  /** Failures are forgotten this long after the first. */
  windowMs: number
  lockMs: number
  /** Pairs, and addresses, that are remembered; beyond, the one that was quiet longest is forgotten. */
  maxEntries: number
}

export const LOCKOUT_LIMITS: LockoutLimits = {
  pairFailures: 10,
  addressFailures: 50,
  windowMs: 300_000,
  lockMs: 300_000,
  maxEntries: 10_000,
}

/** One try to sign in: to be ended by exactly one of `fail`, `succeed`, `cancel`. */
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
   * `locked`: refused. `wait`: to be asked again when another attempt has ended, since it could still lock.
   * `user` is the name's key.
   */
  begin(user: string, source: string, now: number): Attempt | 'locked' | 'wait' {
    const address = networkOf(source)
    const pair = `${address} ${user}`
    if (this.isLocked(user, source, now)) return 'locked'
    if (this.#pairs.isFull(pair) || this.#addresses.isFull(address)) return 'wait'
    this.#pairs.begin(pair, now)
    this.#addresses.begin(address, now)
    return { pair, address }
  }

  /** Whether a try would be refused now; counts nothing. */
  isLocked(user: string, source: string, now: number): boolean {
    const address = networkOf(source)
    return this.#pairs.isLocked(`${address} ${user}`, now) || this.#addresses.isLocked(address, now)
  }

  /** True when it was this failure that locked. */
  fail({ pair, address }: Attempt, now: number): boolean {
    const locked = this.#pairs.fail(pair, now)
    return this.#addresses.fail(address, now) || locked
  }

  /** The pair starts anew; other names' failures from that address stay. */
  succeed({ pair, address }: Attempt): void {
    this.#pairs.end(pair)
    this.#pairs.forgive(pair)
    this.#addresses.end(address)
  }

  /** It was neither: the broker was too busy to find out. */
  cancel({ pair, address }: Attempt): void {
    this.#pairs.end(pair)
    this.#addresses.end(address)
  }

  get size(): { pairs: number; addresses: number } {
    return { pairs: this.#pairs.size, addresses: this.#addresses.size }
  }
}

interface Entry {
  failures: number
  /** Attempts under way. */
  pending: number
  /** Time of the first failure. */
  since: number
  lockedUntil: number
}

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

  /** As many attempts under way as would lock if all failed. */
  isFull(key: string): boolean {
    const entry = this.#entries.get(key)
    return entry !== undefined && this.#limit <= entry.failures + entry.pending
  }

  begin(key: string, now: number): void {
    const entry = this.#current(key, now) ?? { failures: 0, pending: 0, since: now, lockedUntil: 0 }
    entry.pending++
    // a Map keeps the order of insertion: the first is the one that was quiet longest
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#limits.maxEntries < this.#entries.size) {
      const [oldest] = this.#entries.keys()
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
  }

  /** An attempt is over; what is not worth remembering is forgotten. */
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
    if (entry.failures < this.#limit || now < entry.lockedUntil) return false
    entry.lockedUntil = now + this.#limits.lockMs
    return true
  }

  forgive(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.failures = 0
    entry.lockedUntil = 0
    this.#forgetIdle(key, entry)
  }

  #forgetIdle(key: string, entry: Entry): void {
    if (entry.pending <= 0 && entry.failures === 0) this.#entries.delete(key)
  }

  /** The entry, its failures forgotten when their time is over. */
  #current(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry || entry.failures === 0) return entry
    const end = entry.lockedUntil === 0 ? entry.since + this.#limits.windowMs : entry.lockedUntil
    if (end <= now) this.forgive(key)
    return this.#entries.get(key)
  }
}

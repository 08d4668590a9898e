/**
 * Lock-out after failures: counted for each pair of user name and source address, and for each source address.
 * Never for a name alone, so that nobody can lock out somebody else from their own place. Pure: the time is
 * handed in, in milliseconds.
 *
 * An attempt counts as a failure from its beginning, so that many at the same time are no way around.
 */
import { isIPv6 } from 'node:net'
import { plainAddress } from './networks.ts'

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

  /** undefined: locked, or as many attempts under way as would lock. `user` is the name's key. */
  begin(user: string, source: string, now: number): Attempt | undefined {
    const address = networkOf(source)
    const pair = `${address} ${user}`
    if (this.#pairs.isFull(pair, now) || this.#addresses.isFull(address, now)) return undefined
    this.#pairs.count(pair, now)
    this.#addresses.count(address, now)
    return { pair, address }
  }

  /** Whether a try would be refused now; counts nothing. */
  isLocked(user: string, source: string, now: number): boolean {
    const address = networkOf(source)
    return this.#pairs.isFull(`${address} ${user}`, now) || this.#addresses.isFull(address, now)
  }

  /** True when it was this failure that locked. */
  fail({ pair, address }: Attempt, now: number): boolean {
    const locked = this.#pairs.lockIfFull(pair, now)
    return this.#addresses.lockIfFull(address, now) || locked
  }

  /** The pair starts anew; other names' failures from that address stay. */
  succeed({ pair, address }: Attempt): void {
    this.#pairs.forget(pair)
    this.#addresses.uncount(address)
  }

  /** It was neither: the broker was too busy to find out. */
  cancel({ pair, address }: Attempt): void {
    this.#pairs.uncount(pair)
    this.#addresses.uncount(address)
  }

  get size(): { pairs: number; addresses: number } {
    return { pairs: this.#pairs.size, addresses: this.#addresses.size }
  }
}

interface Entry {
  count: number
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

  isFull(key: string, now: number): boolean {
    const entry = this.#current(key, now)
    return entry !== undefined && (now < entry.lockedUntil || this.#limit <= entry.count)
  }

  count(key: string, now: number): void {
    const entry = this.#current(key, now) ?? { count: 0, since: now, lockedUntil: 0 }
    entry.count++
    // a Map keeps the order of insertion: the first is the one that was quiet longest
    this.#entries.delete(key)
    this.#entries.set(key, entry)
    if (this.#limits.maxEntries < this.#entries.size) {
      const [oldest] = this.#entries.keys()
      if (oldest !== undefined) this.#entries.delete(oldest)
    }
  }

  uncount(key: string): void {
    const entry = this.#entries.get(key)
    if (!entry) return
    entry.count--
    if (entry.count <= 0) this.#entries.delete(key)
  }

  lockIfFull(key: string, now: number): boolean {
    const entry = this.#entries.get(key)
    if (!entry || entry.count < this.#limit || now < entry.lockedUntil) return false
    entry.lockedUntil = now + this.#limits.lockMs
    return true
  }

  forget(key: string): void {
    this.#entries.delete(key)
  }

  /** The entry unless its time is over. */
  #current(key: string, now: number): Entry | undefined {
    const entry = this.#entries.get(key)
    if (!entry) return undefined
    const end = entry.lockedUntil === 0 ? entry.since + this.#limits.windowMs : entry.lockedUntil
    if (now < end) return entry
    this.#entries.delete(key)
    return undefined
  }
}

/** An IPv4 address, or the /64 of an IPv6 address: a host commands all of those. */
function networkOf(source: string): string {
  const address = plainAddress(source)
  if (!isIPv6(address)) return address
  const [head = '', tail] = address.split('%')[0]!.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':')
    while (groups.length + after.length < 8) groups.push('0')
    groups.push(...after)
  }
  return groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

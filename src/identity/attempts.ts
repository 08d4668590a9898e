/** Attempts to sign in, as the lock-out counts them, each in its turn. */
import { nameKey } from '../model/names.ts'
import { networkOf } from '../model/networks.ts'
import type { Attempt } from './lockout.ts'
import type { Refusal } from './sign-in.ts'

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

export interface Who {
  user: string
  /** Address of the client. */
  source: string
}

export type BegunAttempt = Attempt | 'locked'

export interface Rejected {
  result: 'rejected'
  reason: Refusal
  locks: boolean
}

export class Attempts {
  readonly #counter: AttemptCounter
  readonly #now: () => number
  /** Sign-ins that wait for an attempt of their network to end. */
  readonly #waiting = new Map<string, (() => void)[]>()

  constructor(counter: AttemptCounter, now: () => number) {
    this.#counter = counter
    this.#now = now
  }

  async isLocked({ user, source }: Who): Promise<boolean> {
    return await this.#counter.isLocked(nameKey(user), source, this.#now())
  }

  async begin({ user, source }: Who): Promise<BegunAttempt | 'busy'> {
    for (;;) {
      const attempt = await this.#counter.begin(nameKey(user), source, this.#now())
      if (attempt !== 'wait') return attempt
      const network = networkOf(source)
      const own = this.#waiting.get(network) ?? []
      const all = [...this.#waiting.values()].reduce((sum, { length }) => sum + length, 0)
      if (MAX_WAITING_OF_NETWORK <= own.length || MAX_WAITING_ATTEMPTS <= all) return 'busy'
      this.#waiting.set(network, own)
      await this.#turn(network, own)
    }
  }

  /** Ends an attempt that succeeded; false if the name or the address is locked. */
  async accept(attempt: BegunAttempt): Promise<boolean> {
    if (attempt === 'locked') return false
    await this.#counter.succeed(attempt)
    return true
  }

  async reject(attempt: BegunAttempt, reason: Refusal): Promise<Rejected> {
    if (attempt === 'locked') return { result: 'rejected', reason: 'locked', locks: false }
    return { result: 'rejected', reason, locks: await this.#counter.fail(attempt, this.#now()) }
  }

  /** Ends an attempt without a result. */
  async cancel(attempt: BegunAttempt): Promise<void> {
    if (attempt !== 'locked') await this.#counter.cancel(attempt)
  }

  /** Wakes the sign-ins that waited for an attempt to end. */
  goOn(source: string): void {
    const network = networkOf(source)
    const waiting = this.#waiting.get(network) ?? []
    this.#waiting.delete(network)
    for (const goOn of waiting) goOn()
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
}

/** Security keys that a browser has been asked to make: each for one sign-in, once, and for a limited time. */
import { randomBytes } from 'node:crypto'
import type { Id } from '../model/objects.ts'

export interface PendingKey {
  userId: Id
  /** Id of the sign-in that has asked. */
  signIn: Id
  name: string
  challenge: string
}

const LIFETIME_MS = 5 * 60_000
const MAX_PENDING = 1000

export class PendingKeys {
  readonly #kept = new Map<string, PendingKey & { ends: number }>()
  readonly #now: () => number

  /** `now` returns milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Keeps one in place of an earlier one of the same sign-in, and of the oldest beyond the limit. Returns its id. */
  open(key: PendingKey): string {
    for (const [id, { ends, signIn }] of this.#kept) {
      const isFull = MAX_PENDING <= this.#kept.size
      if (isFull || ends <= this.#now() || signIn === key.signIn) this.#kept.delete(id)
    }
    const id = randomBytes(16).toString('base64url')
    this.#kept.set(id, { ...key, ends: this.#now() + LIFETIME_MS })
    return id
  }

  /** Returns the one of that id, once, if it is of this user and sign-in. */
  take(id: string, by: Pick<PendingKey, 'userId' | 'signIn'>): PendingKey | undefined {
    const kept = this.#kept.get(id)
    if (kept?.userId !== by.userId || kept.signIn !== by.signIn) return undefined
    this.#kept.delete(id)
    return this.#now() < kept.ends ? kept : undefined
  }
}

/** Answers about tokens, by the digest of the token: a limited number, for a limited time. */
import { createHash } from 'node:crypto'

const MAX_KEPT = 1000

interface Kept<T> {
  until: number
  answer: Promise<T>
}

export class TokenCache<T> {
  readonly #lastsMs: number
  readonly #now: () => number
  /** Oldest first. */
  readonly #kept = new Map<string, Kept<T>>()

  /** `now` returns milliseconds of a clock that never goes back. */
  constructor(lastsMs: number, now: () => number) {
    this.#lastsMs = lastsMs
    this.#now = now
  }

  get size(): number {
    return this.#kept.size
  }

  /** Returns the answer for a token. Simultaneous calls share one `read`; one that rejects is not kept. */
  async of(token: string, read: () => Promise<T>): Promise<T> {
    const digest = createHash('sha256').update(token).digest('base64')
    const known = this.#kept.get(digest)
    if (known && this.#now() < known.until) return await known.answer
    const kept = { until: this.#now() + this.#lastsMs, answer: read() }
    this.#kept.delete(digest)
    this.#kept.set(digest, kept)
    const [oldest] = this.#kept.keys()
    if (MAX_KEPT < this.#kept.size) this.#kept.delete(oldest!)
    try {
      return await kept.answer
    } catch (error) {
      if (this.#kept.get(digest) === kept) this.#kept.delete(digest)
      throw error
    }
  }
}

/** Persons as servers described them a moment ago: a client queries several keys, and then signs with one of them. */
import type { Person } from './methods/method.ts'

/** Milliseconds for which a key that was removed at the server is still accepted for new sign-ins. */
export const LOOK_MS = 60_000
export const MAX_LOOKS = 1000

interface Kept {
  until: number
  person: Promise<Person | undefined>
}

export class Looks {
  readonly #monotonic: () => number
  /** Oldest first. */
  readonly #kept = new Map<string, Kept>()

  /** `monotonic` returns milliseconds. */
  constructor(monotonic: () => number) {
    this.#monotonic = monotonic
  }

  /**
   * Returns the person of this key, or undefined if there is none, which is kept too. Simultaneous calls share one look; what
   * rejects is not kept.
   */
  async of(key: string, look: () => Promise<Person | undefined>): Promise<Person | undefined> {
    const known = this.#kept.get(key)
    if (known && this.#monotonic() < known.until) return await known.person
    const kept = { until: this.#monotonic() + LOOK_MS, person: look() }
    this.#kept.delete(key)
    this.#kept.set(key, kept)
    const [oldest] = this.#kept.keys()
    if (this.#kept.size > MAX_LOOKS) this.#kept.delete(oldest!)
    try {
      return await kept.person
    } catch (error) {
      if (this.#kept.get(key) === kept) this.#kept.delete(key)
      throw error
    }
  }
}

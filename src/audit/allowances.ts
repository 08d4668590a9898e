/**
 * Allowances per name: an amount at once, and more every second. The least recently used names are dropped.
 */

export interface Rate {
  burst: number
  perSecond: number
}

interface Allowance {
  left: number
  at: number
}

/** Number of names kept at a time. */
const MAX_KNOWN = 2000

export class Allowances {
  readonly #rate: Rate
  readonly #known = new Map<string, Allowance>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /**
   * Uses one of the allowance for `name`. Returns false if none is left. `now` is milliseconds of a monotonic
   * clock.
   */
  take(name: string, now: number): boolean {
    const { burst, perSecond } = this.#rate
    let known = this.#known.get(name)
    if (!known) {
      const [oldest] = this.#known.keys()
      if (this.#known.size >= MAX_KNOWN && oldest !== undefined) this.#known.delete(oldest)
      known = { left: burst, at: now }
      this.#known.set(name, known)
    }
    known.left = Math.min(burst, known.left + ((now - known.at) / 1000) * perSecond)
    known.at = now
    const isLeft = known.left >= 1
    if (isLeft) known.left--
    return isLeft
  }
}

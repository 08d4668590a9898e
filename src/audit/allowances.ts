/**
 * Allowances per name: an amount at once, and more every second. Of too many names those are dropped that have their
 * whole allowance back soonest: new names, however many, do not make a name that has used up its own forgotten.
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
/** Number of names dropped together: finding them costs more than one new name should. */
const DROPPED = 500

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
      if (this.#known.size >= MAX_KNOWN) this.#dropSome()
      known = { left: burst, at: now }
      this.#known.set(name, known)
    }
    known.left = Math.min(burst, known.left + ((now - known.at) / 1000) * perSecond)
    known.at = now
    const isLeft = known.left >= 1
    if (isLeft) known.left--
    return isLeft
  }

  #dropSome(): void {
    const { burst, perSecond } = this.#rate
    const known = Array.from(this.#known, ([name, { left, at }]) => ({
      name,
      whole: at + ((burst - left) / perSecond) * 1000,
    }))
    known.sort((a, b) => a.whole - b.whole)
    for (const { name } of known.slice(0, DROPPED)) this.#known.delete(name)
  }
}

/**
 * Times at which what runs has to be judged again, since the end of a user, an API key, a certificate or a timeframe
 * comes.
 */
import type { Basis } from '../identity/basis.ts'

/** Keeps a time for each `T` that ends then. */
export class Due<T extends object = Basis> {
  /** By what ends then, in milliseconds since the epoch. Forgotten with what rests on it. */
  readonly #times = new WeakMap<T, number>()
  /** Not later than the first of them. */
  #first = Number.POSITIVE_INFINITY

  /**
   * Keeps the earlier time of those that are said: a judgement may have read what has changed since. Infinity for
   * none.
   */
  set(basis: T, time: number): void {
    this.replace(basis, Math.min(time, this.#times.get(basis) ?? time))
  }

  /** Keeps this time instead of one that was said before. Infinity for none. */
  replace(basis: T, time: number): void {
    this.#times.set(basis, time)
    this.#first = Math.min(this.#first, time)
  }

  /** Returns those of `bases` whose time has come, each once. Looks at none of them before the first time. */
  take(now: number, bases: () => Iterable<T>): T[] {
    if (now < this.#first) return []
    this.#first = Number.POSITIVE_INFINITY
    const due: T[] = []
    for (const basis of bases()) {
      const time = this.#times.get(basis)
      if (time === undefined) continue
      if (now < time) this.#first = Math.min(this.#first, time)
      else {
        due.push(basis)
        this.#times.delete(basis)
      }
    }
    return due
  }
}

/** When the client has done something last: the target is heard for a moment afterwards, whoever ends the session. */

/** What comes of something is to be recorded for so long. */
export const LAST_EFFECT_MS = 1_000

export class LastEffect {
  readonly #now: () => number
  /** Nothing has been done yet where it is undefined. */
  #at: number | undefined

  /** `now`: milliseconds, never decreasing. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Something passes to the target. */
  act(): void {
    this.#at = this.#now()
  }

  /** Milliseconds for which what was done last may still show. */
  get left(): number {
    return this.#at === undefined ? 0 : Math.max(0, this.#at + LAST_EFFECT_MS - this.#now())
  }
}

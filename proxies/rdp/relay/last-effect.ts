/** Time of the client's last input; its effect is still recorded for a moment, whatever ends the session. */

/** Milliseconds for which the effect of input is recorded. */
export const LAST_EFFECT_MS = 1_000

export class LastEffect {
  readonly #now: () => number
  /** Undefined before the first input. */
  #at: number | undefined

  /** `now`: milliseconds, never decreasing. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Input is sent to the target. */
  act(): void {
    this.#at = this.#now()
  }

  /** Milliseconds for which the last input may still have an effect. */
  get left(): number {
    return this.#at === undefined ? 0 : Math.max(0, this.#at + LAST_EFFECT_MS - this.#now())
  }
}

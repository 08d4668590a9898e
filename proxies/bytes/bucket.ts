/** A token bucket: a burst at once, and a rate in the long run. */
export class Bucket {
  readonly #burst: number
  readonly #rate: number
  readonly #now: () => number
  #tokens: number
  #at: number

  /** `rate`: tokens per second; `now`: milliseconds, never decreasing. */
  constructor(burst: number, rate: number, now: () => number) {
    this.#burst = burst
    this.#rate = rate
    this.#now = now
    this.#tokens = burst
    this.#at = now()
  }

  /** Takes `count` tokens and returns true, or takes none and returns false if there are fewer. */
  take(count: number): boolean {
    this.#refill()
    if (this.#tokens < count) return false
    this.#tokens -= count
    return true
  }

  /** Takes the tokens that are available, at most `count`. */
  spend(count: number): void {
    this.#refill()
    this.#tokens = Math.max(0, this.#tokens - count)
  }

  /**
   * Takes `count` tokens, even beyond the available ones: the bucket stays empty until the debt is refilled.
   */
  owe(count: number): void {
    this.#refill()
    this.#tokens -= count
  }

  get isEmpty(): boolean {
    this.#refill()
    return this.#tokens < 1
  }

  #refill(): void {
    const now = this.#now()
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#rate)
    this.#at = now
  }
}

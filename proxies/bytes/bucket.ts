/** A token bucket: so much at once, and so much for each second. */
export class Bucket {
  readonly #burst: number
  readonly #rate: number
  readonly #now: () => number
  #tokens: number
  #at: number

  /** `rate`: tokens a second; `now`: milliseconds, never decreasing. */
  constructor(burst: number, rate: number, now: () => number) {
    this.#burst = burst
    this.#rate = rate
    this.#now = now
    this.#tokens = burst
    this.#at = now()
  }

  /** Takes so many tokens; false, and none, when there are fewer. */
  take(count: number): boolean {
    this.#refill()
    if (this.#tokens < count) return false
    this.#tokens -= count
    return true
  }

  /** Takes what is there, at most so many tokens. */
  spend(count: number): void {
    this.#refill()
    this.#tokens = Math.max(0, this.#tokens - count)
  }

  /** Takes so many, also those that are yet to come: it is empty until then. */
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

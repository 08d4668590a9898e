/**
 * Limits transfers to an average of bytes a second. A transfer waits until the earlier ones have had their
 * time.
 */
export class Rate {
  readonly #bytesPerSecond: number
  readonly #now: () => number
  readonly #sleep: (milliseconds: number) => Promise<unknown>
  /** End of the time granted so far. */
  #free = 0

  /** 0 for no limit. `now` in milliseconds, never decreasing. */
  constructor(bytesPerSecond: number, now: () => number, sleep: (milliseconds: number) => Promise<unknown>) {
    this.#bytesPerSecond = bytesPerSecond
    this.#now = now
    this.#sleep = sleep
  }

  async take(bytes: number): Promise<void> {
    if (this.#bytesPerSecond === 0) return
    const now = this.#now()
    const start = Math.max(this.#free, now)
    this.#free = start + (bytes * 1000) / this.#bytesPerSecond
    if (start > now) await this.#sleep(start - now)
  }
}

/** Holds transfers to so many bytes a second on average. Whoever wants to send waits for what was sent before. */
export class Rate {
  readonly #bytesPerSecond: number
  readonly #now: () => number
  readonly #sleep: (milliseconds: number) => Promise<unknown>
  /** When what was granted so far is through. */
  #free = 0

  /** 0: no limit. `now` in milliseconds, never decreasing. */
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

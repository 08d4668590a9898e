/** Health of the object store: its loss is reported once, and again only after it was back. */

/** Number of failures in a row, of any object, after which the store counts as down. */
const FAILURES = 3

export class StoreHealth {
  readonly #onDown: (reason: string) => void
  #failures = 0
  #isDown = false

  constructor(onDown: (reason: string) => void) {
    this.#onDown = onDown
  }

  get isDown(): boolean {
    return this.#isDown
  }

  /** Returns how many uploads may run at a time: one, to probe the store, while it is down. */
  room(atOnce: number): number {
    return this.#isDown ? 1 : atOnce
  }

  worked(): void {
    this.#failures = 0
    this.#isDown = false
  }

  failed(reason: string): void {
    this.#failures++
    if (this.#isDown || this.#failures < FAILURES) return
    this.#isDown = true
    this.#onDown(reason)
  }
}

/** Returns the milliseconds until the next attempt, after this many failures in a row (at least one). */
export function backoff(failures: number, first: number, longest: number): number {
  return Math.min(first * 2 ** Math.min(failures - 1, 30), longest)
}

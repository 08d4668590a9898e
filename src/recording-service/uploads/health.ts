/** Whether the object store is there: said once when it is gone, and again only after it was back. */

/** Failures in a row, of whatever object, after which it counts as gone. */
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

  /** How many may be on their way at a time: one, to see whether it is back, while it is gone. */
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

/** Milliseconds until the next attempt, after so many failures in a row (at least one). */
export function backoff(failures: number, first: number, longest: number): number {
  return Math.min(first * 2 ** Math.min(failures - 1, 30), longest)
}

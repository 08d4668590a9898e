/** Divides long work: it runs for a moment, then yields the event loop. */
import { setImmediate } from 'node:timers/promises'

/** Milliseconds. */
const MOMENT = 5

export class Turns {
  #begin = performance.now()

  /** Yields if the moment has passed. */
  async next(): Promise<void> {
    if (performance.now() - this.#begin < MOMENT) return
    await setImmediate()
    this.#begin = performance.now()
  }
}

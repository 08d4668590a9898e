/** A long work beside sessions: it has the event loop for a moment, then it is everybody else's turn. */
import { setImmediate } from 'node:timers/promises'

/** Milliseconds. */
const MOMENT = 5

export class Turns {
  #begin = performance.now()

  /** Lets the others go first when this work has had its moment. */
  async next(): Promise<void> {
    if (performance.now() - this.#begin < MOMENT) return
    await setImmediate()
    this.#begin = performance.now()
  }
}

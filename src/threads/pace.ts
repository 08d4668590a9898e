/** A long check in pieces, which yields to other work of the event loop. */
import { setImmediate as aside } from 'node:timers/promises'

/** Milliseconds that one turn of the event loop goes to such a check, or to a heap of works (slices.ts). */
export const SLICE_MS = 2

/** Lets other work run between the pieces of a long check. */
export class Pace {
  #since = performance.now()

  /** Yields if the check has run for its slice of time; call it before each piece. */
  async step(): Promise<void> {
    if (performance.now() - this.#since <= SLICE_MS) return
    await aside()
    this.#since = performance.now()
  }
}

/**
 * Detects a client that does not read its output. Keys typed meanwhile come from a user that cannot see their
 * effect, and the bastion's buffer for that output is bounded. Reading a little now and then does not help:
 * the age of the oldest waiting byte counts.
 */

/** Longest time that a byte may wait. */
export const TAKING_MS = 3_000
/** Precision of the waiting times. */
const LOOK_MS = 250
/** Number of marks. Bytes written beyond them are not timed separately. */
const MAX_MARKS = 64

export class TakingWatch {
  /** Times of the waiting bytes, oldest first: the first `end` bytes had been written `at` that time. */
  #marks: { end: number; at: number }[] = []

  /** Call after every write and read. `written`: total bytes so far; `waiting`: those not yet read. */
  look(written: number, waiting: number): void {
    const taken = written - waiting
    while (this.#marks.length > 0 && this.#marks[0]!.end <= taken) this.#marks.shift()
    if (waiting === 0) return
    const at = performance.now()
    const last = this.#marks.at(-1)
    if (last && (last.end === written || at - last.at < LOOK_MS || this.#marks.length === MAX_MARKS)) return
    this.#marks.push({ end: written, at })
  }

  get isStuck(): boolean {
    const [oldest] = this.#marks
    return oldest !== undefined && performance.now() - oldest.at >= TAKING_MS
  }
}

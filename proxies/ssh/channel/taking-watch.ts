/**
 * Notices a client that does not take what waits for it. What is typed meanwhile was typed by somebody who cannot see what
 * comes of it, and what the bastion keeps of that has a bound. A little now and then does not help: what counts is the
 * oldest byte that waits.
 */

/** A byte may wait so long. */
export const TAKING_MS = 3_000
/** No finer is it known since when bytes wait. */
const LOOK_MS = 250
/** Of more bytes than came by then it is not known apart how long they wait. */
const MAX_MARKS = 64

export class TakingWatch {
  /** Of bytes that wait, the oldest first: `end` had been handed over by then. */
  #marks: { end: number; at: number }[] = []

  /** Called whenever something came, or was taken. `written`: bytes until now; `waiting`: those that were not taken. */
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

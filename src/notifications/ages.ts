/**
 * Ages of events by a clock that may jump. One from before a jump forward looks older than it is: for a day after it,
 * ages are by the clock as it was going before.
 */

/** Milliseconds. */
const MAX_AGE = 24 * 60 * 60_000
/** Less is no jump: clocks drift, and are set right. */
const JUMP_MS = 60_000

export interface Clocks {
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds of a clock that never goes back. */
  monotonic: () => number
}

export class Ages {
  readonly #clocks: Clocks
  /** Of the wall clock to the other one. */
  #offset: number
  /** The offset since a jump forward. */
  #jumped: { offset: number; since: number } | undefined

  constructor(clocks: Clocks) {
    this.#clocks = clocks
    this.#offset = clocks.now() - clocks.monotonic()
  }

  /** Returns the time before which events are older than a day, in milliseconds since the epoch. */
  oldest(): number {
    const { now, monotonic } = this.#clocks
    const at = monotonic()
    const offset = now() - at
    const before = this.#jumped?.offset ?? this.#offset
    if (offset - before >= JUMP_MS) this.#jumped = { offset, since: at }
    if (offset - this.#offset < JUMP_MS || (this.#jumped && at - this.#jumped.since >= MAX_AGE)) {
      this.#offset = offset
      this.#jumped = undefined
    }
    return this.#offset + at - MAX_AGE
  }
}

/**
 * Measures how long data waits before a client reads it. Users must see the effect of their input: a client's
 * input is held while it lags by more than a moment, and the target is not read while the client reads
 * nothing at all. Reading a little now and then does not help: the age of the oldest waiting byte counts.
 */

/** Age from which on new bitmaps are skipped. */
export const LATE_MS = 1_000
/** Age from which on input is held. */
export const READING_MS = 3_000
/** A client that reads nothing for this long counts as away. */
export const AWAY_MS = 6_000
/** Interval of checks, and the resolution of the measured age. */
const LOOK_MS = 250
/** Marks kept; beyond this, later bytes share the last mark. */
const MAX_MARKS = 64

export interface ReadingWatchOptions {
  stream: { readonly congested: boolean; readonly queued: number }
  /** Bytes handed to the stream so far. */
  written: () => number
  /** One of the getters below may have changed. */
  onChange: () => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class ReadingWatch {
  readonly #options: ReadingWatchOptions
  readonly #now: () => number
  #timer: NodeJS.Timeout | undefined
  /** Marks of waiting bytes, the oldest first: the stream had been handed `end` bytes at `at`. */
  #marks: { end: number; at: number }[] = []
  #taken = 0
  /** Time of the client's last read, or when nothing was waiting. */
  #tookAt: number
  #isLate = false
  #isStuck = false
  #isAway = false

  constructor(options: ReadingWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#tookAt = this.#now()
  }

  /** The client lags: new bitmaps should be skipped. */
  get isLate(): boolean {
    return this.#isLate || this.#options.stream.congested
  }

  /** The client lags by more than a moment: its input should be held. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** The client has not read for long: the target should not be read. */
  get isAway(): boolean {
    return this.#isAway
  }

  /** Resets the away time: a client that is not read itself may be unable to read. */
  excuse(): void {
    this.#tookAt = this.#now()
  }

  /** Called after every send and read. */
  look(): void {
    const { stream, written } = this.#options
    const now = this.#now()
    const taken = written() - stream.queued
    if (taken !== this.#taken || stream.queued === 0) this.#tookAt = now
    this.#taken = taken
    while (this.#marks.length > 0 && this.#marks[0]!.end <= taken) this.#marks.shift()
    if (stream.queued > 0) {
      this.#mark(written(), now)
      this.#timer ??= setInterval(() => this.#tick(), LOOK_MS)
    }
    const age = this.#marks.length > 0 ? now - this.#marks[0]!.at : 0
    this.#isLate = LATE_MS <= age
    this.#isStuck = READING_MS <= age
    this.#isAway = this.#isStuck && AWAY_MS <= now - this.#tookAt
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #mark(end: number, at: number): void {
    const last = this.#marks.at(-1)
    if (last && (last.end === end || at - last.at < LOOK_MS || this.#marks.length === MAX_MARKS)) return
    this.#marks.push({ end, at })
  }

  #tick(): void {
    const [wasStuck, wasAway] = [this.#isStuck, this.#isAway]
    this.look()
    if (this.#options.stream.queued === 0) this.stop()
    if (wasStuck !== this.#isStuck || wasAway !== this.#isAway) this.#options.onChange()
  }
}

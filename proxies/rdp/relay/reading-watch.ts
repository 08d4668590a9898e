/**
 * How long what is sent to a client waits until it is taken. Who acts has to be able to see what that does: nothing of a
 * client's passes on while it is behind by more than a moment, and of one that takes nothing at all the target is not read
 * either. A little now and then does not help: what counts is the oldest byte that waits.
 */

/** From then on bitmaps that begin are left out. */
export const LATE_MS = 1_000
/** From then on nobody acts. */
export const READING_MS = 3_000
/** Taking nothing for so long, the client is taken to be away. */
export const AWAY_MS = 6_000
/** It is looked so often, and no finer is it known since when bytes wait. */
const LOOK_MS = 250
/** Moments that are kept: of more bytes than came by then it is not known apart how long they wait. */
const MAX_MARKS = 64

export interface ReadingWatchOptions {
  stream: { readonly congested: boolean; readonly queued: number }
  /** Bytes that were handed to the stream until now. */
  written: () => number
  /** One of the answers below may be another. */
  onChange: () => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class ReadingWatch {
  readonly #options: ReadingWatchOptions
  readonly #now: () => number
  #timer: NodeJS.Timeout | undefined
  /** Of bytes that wait, the oldest first: `end` had been handed over by then. */
  #marks: { end: number; at: number }[] = []
  #taken = 0
  /** When it took something, or was not asked to. */
  #tookAt: number
  #isLate = false
  #isStuck = false
  #isAway = false

  constructor(options: ReadingWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#tookAt = this.#now()
  }

  /** It has enough to take: a bitmap that begins now would only be one more. */
  get isLate(): boolean {
    return this.#isLate || this.#options.stream.congested
  }

  /** What waits for it has waited for longer than a moment: nothing that it does should pass on. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** It has not taken anything for long: nothing should be read that makes more. */
  get isAway(): boolean {
    return this.#isAway
  }

  /** The client may be waiting itself, to be read: it is not known whether it would take anything. */
  excuse(): void {
    this.#tookAt = this.#now()
  }

  /** Called whenever something was sent, or taken. */
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

/**
 * Notices a client that does not read: what its target draws meanwhile would be skipped by the target, and would be neither
 * on a screen nor in the recording. Who acts has to be able to see it.
 */

/** A slow line takes some of what waits in that time. */
export const READING_MS = 3_000

export interface ReadingWatchOptions {
  pipe: { readonly congested: boolean; readonly queued: number }
  onChange: () => void
}

export class ReadingWatch {
  readonly #options: ReadingWatchOptions
  #timer: NodeJS.Timeout | undefined
  #queued = 0
  #isStuck = false

  constructor(options: ReadingWatchOptions) {
    this.#options = options
  }

  /** It has taken nothing for some time: nothing of it should be read. */
  get isStuck(): boolean {
    return this.#isStuck
  }

  /** Called whenever something was sent, or taken. */
  look(): void {
    const { congested, queued } = this.#options.pipe
    if (!congested) this.stop()
    else if (!this.#timer) {
      this.#queued = queued
      this.#timer = setInterval(() => this.#tick(), READING_MS)
    }
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#isStuck = false
  }

  #tick(): void {
    const { pipe, onChange } = this.#options
    const wasStuck = this.#isStuck
    this.#isStuck = this.#queued <= pipe.queued
    this.#queued = pipe.queued
    if (wasStuck !== this.#isStuck) onChange()
  }
}

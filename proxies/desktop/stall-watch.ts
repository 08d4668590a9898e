/** Detects a target that never sends a picture, or that stops or dribbles in the middle of a message. */
import { FIRST_UPDATE_MS, STALL_BYTES, STALL_LOOK_MS, STALL_MS } from './limits.ts'

export interface StallWatchOptions {
  /** True if the target is read, and is in the middle of a message. */
  isOwed: () => boolean
  /** True if the target is not read, so that a delay is not its fault. */
  isPaused: () => boolean
  onStall: (reason: string) => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class StallWatch {
  readonly #options: StallWatchOptions
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout
  /** When the first picture was requested, until it begins. */
  #askedAt: number | undefined
  #hasUpdated = false
  /** The start of the current measurement, and the bytes received since. */
  #owedSince: number | undefined
  #received = 0

  constructor(options: StallWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#timer = setInterval(() => this.look(), STALL_LOOK_MS)
    this.#timer.unref()
  }

  /** Notes a request for the whole picture. */
  asked(): void {
    if (!this.#hasUpdated) this.#askedAt ??= this.#now()
  }

  /** Stops the wait for a picture until the next request: the target has to wait for another party. */
  answered(): void {
    this.#askedAt = undefined
  }

  received(bytes: number): void {
    this.#received += bytes
  }

  /** Notes a complete update. */
  updated(): void {
    this.#hasUpdated = true
    this.#askedAt = undefined
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  look(): void {
    const now = this.#now()
    if (this.#options.isPaused() && this.#askedAt !== undefined) this.#askedAt = now
    const isOwed = this.#options.isOwed()
    // The picture has begun: from here on its speed is checked.
    if (isOwed) this.#askedAt = undefined
    if (!isOwed && this.#askedAt !== undefined && FIRST_UPDATE_MS < now - this.#askedAt) {
      this.#options.onStall(`the target has sent no picture in ${FIRST_UPDATE_MS / 1000} seconds`)
      return
    }
    if (!isOwed) {
      this.#owedSince = undefined
      return
    }
    if (this.#owedSince === undefined) {
      this.#owedSince = now
      this.#received = 0
    } else if (STALL_MS < now - this.#owedSince) {
      if (this.#received < STALL_BYTES) {
        this.#options.onStall(`the target stopped in the middle of a message ${STALL_MS / 1000} seconds ago`)
        return
      }
      this.#owedSince = now
      this.#received = 0
    }
  }
}

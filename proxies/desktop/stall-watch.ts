/** Notices a target that never sends a picture, or that stops, or dribbles, in the middle of a message. */
import { FIRST_UPDATE_MS, STALL_BYTES, STALL_LOOK_MS, STALL_MS } from './limits.ts'

export interface StallWatchOptions {
  /** The target is read, and has begun something that it has not ended. */
  isOwed: () => boolean
  /** The target is not read: whoever else is slow, it is not the target. */
  isPaused: () => boolean
  onStall: (reason: string) => void
  /** Milliseconds, never decreasing. */
  now?: () => number
}

export class StallWatch {
  readonly #options: StallWatchOptions
  readonly #now: () => number
  readonly #timer: NodeJS.Timeout
  /** When it was asked for its first picture, which has not come. */
  #askedAt: number | undefined
  #hasUpdated = false
  /** Since then the target owes something, and has sent so many bytes. */
  #owedSince: number | undefined
  #received = 0

  constructor(options: StallWatchOptions) {
    this.#options = options
    this.#now = options.now ?? (() => performance.now())
    this.#timer = setInterval(() => this.look(), STALL_LOOK_MS)
    this.#timer.unref()
  }

  /** It was asked for all of its picture. */
  asked(): void {
    if (!this.#hasUpdated) this.#askedAt ??= this.#now()
  }

  /** It is somebody else's turn, until it is asked again. */
  answered(): void {
    this.#askedAt = undefined
  }

  received(bytes: number): void {
    this.#received += bytes
  }

  /** An update has come whole. */
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
    // It has begun: from here on it is held to its speed.
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

/**
 * Sends a session's frames to the broker as they are recorded, in batches, while the session is watched.
 * Otherwise each frame costs one comparison. Never waits for the broker: frames that it does not accept in
 * time are dropped, and the loss is reported so that the broker redraws the screen.
 */
import { Buffer } from 'node:buffer'
import type { LiveAnswer, LiveFrame, LiveRequest } from '../../src/contract/gate.ts'

/** Milliseconds for which frames are gathered before they are sent. */
export const LIVE_DELAY_MS = 20
/** Bytes unsent or unconfirmed by the broker above which frames are dropped. */
export const LIVE_BUFFER = 1024 * 1024
/** Bytes per second that a person can watch: above that, frames are dropped and the screen is redrawn. */
export const LIVE_RATE = 2 * 1024 * 1024
/** Overhead counted per frame, in bytes. */
const FRAME_OVERHEAD = 64

/** The messages about one session. */
type Watched = Omit<LiveRequest, 'session'>

export interface LiveTapOptions {
  send: (request: Watched) => Promise<LiveAnswer>
  /** Resolves when all frames until now are on the disk. */
  flush: () => Promise<void>
  /** Frames recorded until now. */
  recorded: () => number
  /** Milliseconds, never decreasing. */
  now: () => number
}

export class LiveTap {
  readonly #options: LiveTapOptions
  #isOn = false
  /** Counts the notices of new watchers. */
  #watches = 0
  #frames: LiveFrame[] = []
  #bytes = 0
  /** Bytes sent to the broker and not confirmed yet. */
  #underWay = 0
  #synced: Watched['synced']
  #isLost = false
  #allowance = LIVE_RATE
  #allowedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: LiveTapOptions) {
    this.#options = options
  }

  /** True while frames are wanted. */
  get isOn(): boolean {
    return this.#isOn
  }

  /** Starts sending frames for a new watcher, and reports as `sync` how far the recording is on the disk. */
  watch(sync: number): void {
    const { flush, recorded, now } = this.#options
    this.#watches++
    if (!this.#isOn) {
      this.#isOn = true
      this.#allowance = LIVE_RATE
      this.#allowedAt = now()
    }
    const frames = recorded()
    flush().then(
      () => {
        this.#synced = { sync, frames }
        this.#send()
      },
      // The recording has failed, which ends the session.
      () => this.stop(),
    )
  }

  /** Sends the remaining frames at the end of the recording, and nothing after them. */
  close(): void {
    if (this.#isOn && this.#frames.length > 0) this.#send()
    this.stop()
  }

  stop(): void {
    this.#isOn = false
    this.#clear()
  }

  /** Handles a recorded frame; its payload is copied. */
  frame(frame: LiveFrame): void {
    const bytes = frame.payload.length + FRAME_OVERHEAD
    if (this.#underWay + this.#bytes + bytes > LIVE_BUFFER || !this.#isAllowed(bytes)) {
      this.stop()
      this.#isLost = true
      this.#send()
      return
    }
    this.#bytes += bytes
    this.#frames.push({ ...frame, payload: Buffer.from(frame.payload) })
    this.#timer ??= setTimeout(() => this.#send(), LIVE_DELAY_MS)
  }

  #isAllowed(bytes: number): boolean {
    const now = this.#options.now()
    const earned = this.#allowance + ((now - this.#allowedAt) * LIVE_RATE) / 1000
    this.#allowedAt = now
    this.#allowance = Math.min(earned, LIVE_RATE) - bytes
    return this.#allowance >= 0
  }

  #send(): void {
    const bytes = this.#bytes
    const request: Watched = {
      frames: this.#frames,
      ...(this.#synced && { synced: this.#synced }),
      ...(this.#isLost && { lost: true as const }),
    }
    this.#clear()
    this.#synced = undefined
    this.#isLost = false
    this.#underWay += bytes
    const watches = this.#watches
    this.#options.send(request).then(
      ({ watched }) => {
        this.#underWay -= bytes
        // Another watcher may have come since the broker answered.
        if (!watched && watches === this.#watches) this.stop()
      },
      () => {
        this.#underWay -= bytes
        this.stop()
      },
    )
  }

  #clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#frames = []
    this.#bytes = 0
  }
}

/**
 * What the proxy does for those who watch a session: its frames go to the broker as they are recorded, in batches. A
 * session that nobody watches pays for one comparison a frame. The broker is never waited for: what it does not take
 * in time is left out, and it is told so, to show the screen anew.
 */
import { Buffer } from 'node:buffer'
import type { LiveAnswer, LiveFrame, LiveRequest } from '../../src/contract/gate.ts'

/** How long frames gather before they go, in milliseconds. */
export const LIVE_DELAY_MS = 20
/** Bytes that wait for the broker, or that it has not answered for, from which on frames are left out. */
export const LIVE_BUFFER = 1024 * 1024
/** Bytes a second that somebody can watch: what comes faster is left out, and the screen shown anew. */
export const LIVE_RATE = 2 * 1024 * 1024
/** What a frame counts for beside its payload. */
const FRAME_OVERHEAD = 64

/** What is sent of a session. */
type Watched = Omit<LiveRequest, 'session'>

export interface LiveTapOptions {
  send: (request: Watched) => Promise<LiveAnswer>
  /** Resolves when all frames until now are on the disk. */
  flush: () => Promise<void>
  /** Frames that were recorded until now. */
  recorded: () => number
  /** Milliseconds, never decreasing. */
  now: () => number
}

export class LiveTap {
  readonly #options: LiveTapOptions
  #isOn = false
  /** Notices that somebody watches. */
  #watches = 0
  #frames: LiveFrame[] = []
  #bytes = 0
  /** Bytes on their way to the broker. */
  #underWay = 0
  #synced: Watched['synced']
  #isLost = false
  #allowance = LIVE_RATE
  #allowedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(options: LiveTapOptions) {
    this.#options = options
  }

  /** Frames are wanted. */
  get isOn(): boolean {
    return this.#isOn
  }

  /** Somebody watches from here on: tells the broker how far the recording on the disk has come, as `sync`. */
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

  /** The recording ends: what is there goes to the broker, and nothing after it. */
  close(): void {
    if (this.#isOn && this.#frames.length > 0) this.#send()
    this.stop()
  }

  stop(): void {
    this.#isOn = false
    this.#clear()
  }

  /** A frame was recorded; its payload is copied. */
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
        // Somebody may have come since the broker answered.
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

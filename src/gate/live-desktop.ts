/**
 * Frames of a desktop on their way to the thread that draws it; watchers get its pictures instead of the
 * frames.
 */
import { isGraphics } from '../../recordings/container/frames.ts'
import type { LiveFrame } from '../contract/gate.ts'

/** Limit of bytes that wait while a keyframe is drawn. */
export const MAX_HELD = 8 * 1024 * 1024
/** Bytes counted per frame besides its payload. */
const OVERHEAD = 64

export class DesktopFeed {
  readonly #send: (frames: LiveFrame[]) => void
  #held: LiveFrame[] = []
  #bytes = 0
  #isHeld = false

  constructor(send: (frames: LiveFrame[]) => void) {
    this.#send = send
  }

  /** Holds frames back while a keyframe is drawn. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#flush()
  }

  /** Adds frames. Returns false, and drops all held ones, if there are too many. */
  push(frames: readonly LiveFrame[]): boolean {
    this.#held.push(...frames)
    for (const { payload } of frames) this.#bytes += payload.length + OVERHEAD
    if (!this.#isHeld) this.#flush()
    if (this.#bytes <= MAX_HELD) return true
    this.clear()
    return false
  }

  clear(): void {
    this.#held = []
    this.#bytes = 0
  }

  #flush(): void {
    if (this.#held.length > 0) this.#send(this.#held)
    this.clear()
  }
}

/** Whether watchers get the frame itself; pixels reach them as pictures. */
export function isTold({ type }: LiveFrame): boolean {
  return !isGraphics(type)
}

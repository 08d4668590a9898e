/** Frames of a desktop on their way to the thread that draws it, in the place of those who watch. */
import { isGraphics } from '../../recordings/container/frames.ts'
import type { LiveFrame } from '../contract/gate.ts'

/** Bytes of frames that wait while a keyframe is drawn. */
export const MAX_HELD = 8 * 1024 * 1024
/** What a frame counts for beside its payload. */
const OVERHEAD = 64

export class DesktopFeed {
  readonly #send: (frames: LiveFrame[]) => void
  #held: LiveFrame[] = []
  #bytes = 0
  #isHeld = false

  constructor(send: (frames: LiveFrame[]) => void) {
    this.#send = send
  }

  /** A keyframe is being drawn: frames behind it wait. */
  hold(): void {
    this.#isHeld = true
  }

  release(): void {
    this.#isHeld = false
    this.#flush()
  }

  /** False: there are too many, and those that waited are dropped. */
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

/** Whether those who watch get the frame itself: pixels come to them as pictures. */
export function isTold({ type }: LiveFrame): boolean {
  return !isGraphics(type)
}

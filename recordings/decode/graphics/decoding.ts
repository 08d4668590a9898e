/**
 * Waiting in decoders: each decoder is a generator that yields when it has to be resumed. A piece may end
 * anywhere, and a few bytes may request many pixels.
 */
import type { Framebuffer } from './framebuffer.ts'

/** The next bytes have not arrived yet. */
export const MORE = 'more'
/** Many pixels were painted: the caller may want to do something else first. */
export const PAUSE = 'pause'

/** A rectangle or a message is complete, and no byte of the next one was read. */
export const BOUNDARY = 'boundary'

export type Wait = typeof MORE | typeof PAUSE | typeof BOUNDARY
export type Decoding = Generator<Wait, void, void>

/** Pixels between two pauses: about ten milliseconds. */
const PIXELS_PER_TURN = 4 * 1024 * 1024

/** Drawing surface of the decoders, with a count of the painted pixels. */
export class Easel {
  readonly framebuffer: Framebuffer
  #painted = 0
  #pausedAt = 0

  constructor(framebuffer: Framebuffer) {
    this.framebuffer = framebuffer
  }

  /** Number of pixels painted so far, including repainted ones. */
  get painted(): number {
    return this.#painted
  }

  /** Adds to the number of painted pixels. Returns true when a pause is due. */
  count(pixels: number): boolean {
    this.#painted += pixels
    if (this.#painted - this.#pausedAt < PIXELS_PER_TURN) return false
    this.#pausedAt = this.#painted
    return true
  }
}

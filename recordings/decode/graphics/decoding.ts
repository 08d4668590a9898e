/**
 * How decoders wait: each is a generator that yields when it has to come back. A piece may end anywhere, and a few bytes
 * may ask for many pixels.
 */
import type { Framebuffer } from './framebuffer.ts'

/** The bytes that come next are not there yet. */
export const MORE = 'more'
/** Much was painted: whoever runs it may want to do something else first. */
export const PAUSE = 'pause'

/** A rectangle or a message is done, and nothing of the next one was taken. */
export const BOUNDARY = 'boundary'

export type Wait = typeof MORE | typeof PAUSE | typeof BOUNDARY
export type Decoding = Generator<Wait, void, void>

/** Pixels between two pauses: some ten milliseconds. */
const PIXELS_PER_TURN = 4 * 1024 * 1024

/** What decoders paint on. */
export class Easel {
  readonly framebuffer: Framebuffer
  #painted = 0
  #pausedAt = 0

  constructor(framebuffer: Framebuffer) {
    this.framebuffer = framebuffer
  }

  /** Pixels that were painted so far, some of them many times. */
  get painted(): number {
    return this.#painted
  }

  /** So many pixels were painted; true: it is time for a pause. */
  count(pixels: number): boolean {
    this.#painted += pixels
    if (this.#painted - this.#pausedAt < PIXELS_PER_TURN) return false
    this.#pausedAt = this.#painted
    return true
  }
}

/** Who draws a graphic channel: its frames in, a framebuffer out. */
import type { Frame } from '../../container/frames.ts'
import type { Framebuffer } from './framebuffer.ts'
import type { Rectangle } from './rectangle.ts'

/** What a painter goes on with, beside its framebuffer: for JSON. */
export type PainterState = Record<string, unknown>

export interface Painter {
  readonly framebuffer: Framebuffer
  /** Why the picture goes on no longer: what came cannot be drawn. */
  readonly stopped: string | undefined
  /** Pixels that were painted so far, some of them many times: what drawing has cost. */
  readonly painted: number

  /** Takes a frame of the channel, and draws all of it. */
  apply(frame: Pick<Frame, 'type' | 'payload'>): void

  /**
   * Draws some of a `graphics` payload and says how many of its bytes that were; to be called with the rest of them until
   * there is none and `isPaused` is false. It returns after each place at which a snapshot may be taken, and after some
   * ten milliseconds of painting.
   */
  paint(graphics: Uint8Array): number
  /** More can be painted without another byte. */
  readonly isPaused: boolean

  /** A picture to look at: the framebuffer with the pointer drawn into it; it may be the framebuffer itself. */
  picture(): Framebuffer

  /** Where the pointer is drawn in `picture`: what lies inside; undefined where it is not. */
  readonly pointer: Rectangle | undefined

  /** The bytes so far do not end in the middle of something. */
  readonly isAtPlace: boolean

  /** undefined where there is none to be had: not at a place, and seldom there. */
  snapshot(): PainterState | undefined
}

/** Draws a graphic channel: its frames in, a framebuffer out. */
import type { Frame } from '../../container/frames.ts'
import type { Framebuffer } from './framebuffer.ts'
import type { Rectangle } from './rectangle.ts'

/** A painter's state beside its framebuffer, for JSON. */
export type PainterState = Record<string, unknown>

export interface Painter {
  readonly framebuffer: Framebuffer
  /** Reason why the picture stopped: the received data cannot be drawn. */
  readonly stopped: string | undefined
  /** Number of pixels painted so far, including repainted ones: the cost of drawing. */
  readonly painted: number

  /** Draws all of a frame of the channel. */
  apply(frame: Pick<Frame, 'type' | 'payload'>): void

  /**
   * Draws a part of a `graphics` payload and returns the bytes consumed; to be called with the rest until no
   * byte is left and `isPaused` is false. It returns at each place that allows a snapshot, and after about
   * ten milliseconds of painting.
   */
  paint(graphics: Uint8Array): number
  /** Set if more can be painted without another byte. */
  readonly isPaused: boolean

  /**
   * Returns the picture to show: the framebuffer with the pointer drawn into it. It may be the framebuffer
   * itself.
   */
  picture(): Framebuffer

  /** The visible area of the pointer in `picture`. Undefined if none is drawn. */
  readonly pointer: Rectangle | undefined

  /** True if the bytes so far do not end within a message or rectangle. */
  readonly isAtPlace: boolean

  /** Returns undefined if no snapshot is possible: not at a place, and seldom at one. */
  snapshot(): PainterState | undefined
}

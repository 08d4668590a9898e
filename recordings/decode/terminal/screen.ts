/** Draws the frames of one channel on an emulator. */

import { FRAME, type Frame } from '../../container/frames.ts'
import { channelOpenOf } from '../frames/channel.ts'
import { sizeOf } from '../frames/payload.ts'
import { Emulator, type Size } from './emulator.ts'
import { Utf8Stream } from './utf8.ts'

/** Size for a channel without a terminal: the output of a command. */
export const PLAIN_SIZE: Size = { columns: 80, rows: 24 }

/** A view that a playhead draws: frames in, a picture out. */
export interface Shown {
  /** Draws a frame of the channel. A returned promise must be awaited before the next frame. */
  apply(frame: Frame): Promise<void> | undefined
  /** Resolves when all frames are drawn. */
  settle(): Promise<void>
  destroy(): void
}

export class Screen implements Shown {
  readonly emulator: Emulator
  readonly hasTerminal: boolean
  readonly #output = new Utf8Stream()
  readonly #error = new Utf8Stream()

  constructor(size: Size, hasTerminal: boolean) {
    this.hasTerminal = hasTerminal
    this.emulator = new Emulator(size, { convertEol: !hasTerminal })
  }

  /** Creates a screen for the channel of this `channelOpen`. */
  static of(payload: Uint8Array): Screen {
    const { terminal } = channelOpenOf(payload)
    return new Screen(terminal ?? PLAIN_SIZE, terminal !== undefined)
  }

  /** Draws a frame of this channel. A returned promise must be awaited before the next frame. */
  apply(frame: Pick<Frame, 'type' | 'payload'>): Promise<void> | undefined {
    switch (frame.type) {
      case FRAME.output:
        return this.emulator.push(this.#output.decode(frame.payload))
      case FRAME.errorOutput:
        return this.emulator.push(this.#error.decode(frame.payload))
      case FRAME.resize: {
        const size = sizeOf(frame.payload)
        return size && this.emulator.resize(size)
      }
      default:
        return undefined
    }
  }

  settle(): Promise<void> {
    return this.emulator.settle()
  }

  destroy(): void {
    this.emulator.destroy()
  }

  /** True if a snapshot of the settled emulator would contain all the frames so far. */
  get isBetween(): boolean {
    return this.emulator.isBetweenSequences && !this.#output.isPartial && !this.#error.isPartial
  }
}

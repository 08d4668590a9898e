/** What one channel shows: its frames, drawn on an emulator. */

import { FRAME, type Frame } from '../../container/frames.ts'
import { channelOpenOf } from '../frames/channel.ts'
import { sizeOf } from '../frames/payload.ts'
import { Emulator, type Size } from './emulator.ts'
import { Utf8Stream } from './utf8.ts'

/** For what has no terminal: the output of a command. */
export const PLAIN_SIZE: Size = { columns: 80, rows: 24 }

/** What a playhead moves on: frames in, something to look at. */
export interface Shown {
  /** Draws a frame of the channel. A promise is to be waited for before the next frame. */
  apply(frame: Frame): Promise<void> | undefined
  /** Resolves when all of it is drawn. */
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

  /** For the channel that this `channelOpen` begins. */
  static of(payload: Uint8Array): Screen {
    const { terminal } = channelOpenOf(payload)
    return new Screen(terminal ?? PLAIN_SIZE, terminal !== undefined)
  }

  /** Draws a frame of this channel. A promise is to be waited for before the next frame. */
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

  /** Whether a snapshot of the emulator, once it has settled, misses nothing of the frames so far. */
  get isBetween(): boolean {
    return this.emulator.isBetweenSequences && !this.#output.isPartial && !this.#error.isPartial
  }
}

/** Follows a recording that still grows, as far as it is told that frames are on the disk. */
import { Buffer } from 'node:buffer'
import { type FileHandle, open } from 'node:fs/promises'
import { MAX_FRAME_PAYLOAD } from '../../container/format/limits.ts'
import { type Frame, isStream } from '../../container/frames.ts'
import { RecordingReader } from '../../container/reader.ts'
import type { PictureChange } from './desktop.ts'
import { type ChannelState, Screens } from './screen.ts'

const PIECE_LENGTH = 1024 * 1024

/** `after`: frames in the recording, this one included. */
export type FollowedFrame = Frame & { after: number }

export class RecordingFollower {
  readonly #path: string
  readonly #key: Uint8Array
  readonly #screens = new Screens()
  #file: FileHandle | undefined
  #frames: AsyncGenerator<Frame> | undefined
  /** Frames that were read from the file, and that were drawn, from there or handed in. */
  #count = 0
  #drawn = 0
  #isOver = false
  /** Goes on with a file whose end was reached. */
  #more: (() => void) | undefined

  constructor(path: string, key: Uint8Array) {
    this.#path = path
    this.#key = key
  }

  /**
   * The channels that are open after the first `frames` frames, which have to be on the disk. A call waits for the one
   * before it. Throws RecordingError, and what the disk throws.
   */
  async state(frames: number): Promise<ChannelState[]> {
    this.#file ??= await open(this.#path, 'r')
    this.#frames ??= (await RecordingReader.open(this.#pieces(this.#file), this.#key)).frames()
    this.#more?.()
    while (this.#count < frames) {
      const { value, done } = await this.#frames.next()
      if (done) break
      this.#count++
      if (this.#count <= this.#drawn) continue
      this.#drawn = this.#count
      const drawing = this.#screens.apply(value)
      if (drawing) await drawing
    }
    return await this.#screens.state()
  }

  /** Draws frames that may not be on the disk yet. Where some before them are missing, the file will have them. */
  async take(frames: readonly FollowedFrame[]): Promise<void> {
    for (const { after, ...frame } of frames) {
      // A long piece of a stream is one frame here and several in the file.
      const pieces = Math.max(1, Math.ceil(frame.payload.length / MAX_FRAME_PAYLOAD))
      if (after - (isStream(frame.type) ? pieces : 1) !== this.#drawn) continue
      this.#drawn = after
      const drawing = this.#screens.apply(frame)
      if (drawing) await drawing
    }
  }

  /** What has changed on desktops since the last call. */
  changes(): PictureChange[] {
    return this.#screens.changes()
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#more?.()
    this.#screens.destroy()
    await this.#file?.close()
  }

  /** The file's bytes; at its end it waits for the next call of `state`. */
  async *#pieces(file: FileHandle): AsyncGenerator<Uint8Array> {
    while (!this.#isOver) {
      const piece = Buffer.allocUnsafe(PIECE_LENGTH)
      const { bytesRead } = await file.read(piece, 0, PIECE_LENGTH, null)
      if (bytesRead > 0) yield piece.subarray(0, bytesRead)
      else {
        await new Promise<void>((resolve) => {
          this.#more = resolve
        })
        this.#more = undefined
      }
    }
  }
}

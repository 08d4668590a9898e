/** Follows a growing recording, as far as its frames are known to be on the disk. */
import { Buffer } from 'node:buffer'
import { type FileHandle, open } from 'node:fs/promises'
import { MAX_FRAME_PAYLOAD } from '../../container/format/limits.ts'
import { type Frame, isStream } from '../../container/frames.ts'
import { RecordingReader } from '../../container/reader.ts'
import type { PictureChange } from './desktop.ts'
import { type ChannelState, Screens } from './screen.ts'

const PIECE_LENGTH = 1024 * 1024

/** `after`: number of frames in the recording, including this one. */
export type FollowedFrame = Frame & { after: number }

export class RecordingFollower {
  readonly #path: string
  readonly #key: Uint8Array
  readonly #screens = new Screens()
  #file: FileHandle | undefined
  #frames: AsyncGenerator<Frame> | undefined
  /** Number of frames drawn, from the file or from the caller. */
  #count = 0
  #drawn = 0
  #isOver = false
  /** Resumes reading of a file whose end was reached. */
  #more: (() => void) | undefined

  constructor(path: string, key: Uint8Array) {
    this.#path = path
    this.#key = key
  }

  /**
   * Returns the channels that are open after the first `frames` frames, which must be on the disk. A call
   * waits for the previous one. Throws RecordingError, and the disk's errors.
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

  /**
   * Draws frames that may not be on the disk yet. If earlier frames are missing, they are read from the file
   * later.
   */
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

  /** Returns the changes of desktops since the last call. */
  changes(): PictureChange[] {
    return this.#screens.changes()
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#more?.()
    this.#screens.destroy()
    await this.#file?.close()
  }

  /** Yields the file's bytes; waits at its end for the next call of `state`. */
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

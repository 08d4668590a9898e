/** Keyframes of a graphic channel: the changed bands of rows of its pixels, and its painter's state. */
import { Buffer } from 'node:buffer'
import { FRAME, type Frame } from '../../container/frames.ts'
import type { Framebuffer } from '../../decode/graphics/framebuffer.ts'
import type { Painter, PainterState } from '../../decode/graphics/painter.ts'
import type { Rectangle } from '../../decode/graphics/rectangle.ts'
import type { Allowance } from './allowance.ts'
import type { Block, PictureKeyframe, Place } from './directory.ts'

/**
 * Bytes of graphics between two keyframes: the most that a seek has to decode. Also at least the last
 * keyframe's size.
 */
export const KEYFRAME_GRAPHICS = 4 * 1024 * 1024
/** Pixels painted between two keyframes, for graphics of few bytes and much work. */
const KEYFRAME_PAINTED = 128 * 1024 * 1024
/** Bytes of graphics after which a snapshot that was not possible is tried again. */
const RETRY = 64 * 1024
/** Pixels of a band: 1 MiB. */
const BAND_PIXELS = 256 * 1024

/** A keyframe's block, as JSON. */
export interface PictureState {
  width: number
  height: number
  /** Bands from the top, each of `bandRows` rows. */
  bands: Block[]
  painter: PainterState
}

export interface PicturesOptions {
  channel: number
  painter: Painter
  allowance: Allowance
  write: (plain: Buffer) => Promise<Block>
}

/** Place of a frame: the place of a group, and the number of frames, of any channel, between the two. */
export interface FramePlace {
  place: Place
  frames: number
}

export class Pictures {
  readonly #options: PicturesOptions
  #bands: Block[] = []
  #size = ''
  /** Bytes since the last keyframe. */
  #bytes = 0
  #read = 0
  #painted = 0
  #written = 0
  #retryAt = 0
  #isOver = false

  constructor(options: PicturesOptions) {
    this.#options = options
  }

  /** Counts bytes of the file. */
  read(bytes: number): void {
    this.#read += bytes
  }

  /** Draws a frame of the channel and makes the keyframes that are due. `apart`: factor of their distance. */
  async apply(
    frame: Frame,
    at: FramePlace,
    apart: { read: number; times: number },
  ): Promise<PictureKeyframe[]> {
    const { painter, allowance } = this.#options
    if (this.#isOver) return []
    if (frame.type !== FRAME.graphics) {
      painter.apply(frame)
      return []
    }
    const { payload } = frame
    const made: PictureKeyframe[] = []
    allowance.earn(payload.length)
    this.#bytes += payload.length
    let used = 0
    do {
      await allowance.spend(async () => {
        used += painter.paint(payload.subarray(used))
      })
      this.#isOver = painter.stopped !== undefined || allowance.isSpent
      if (this.#isOver) return made
      if (!this.#isDue(apart)) continue
      const keyframe = await allowance.spend(() => this.#keyframe(frame.time, at, used))
      if (keyframe) made.push(keyframe)
    } while (used < payload.length || painter.isPaused)
    return made
  }

  #isDue({ read, times }: { read: number; times: number }): boolean {
    if (!this.#options.painter.isAtPlace || this.#bytes < this.#retryAt) return false
    return (
      this.#bytes >= Math.max(KEYFRAME_GRAPHICS, this.#written) * times ||
      this.#options.painter.painted - this.#painted >= KEYFRAME_PAINTED * times ||
      this.#read >= read * times
    )
  }

  async #keyframe(
    time: number,
    { place, frames }: FramePlace,
    bytes: number,
  ): Promise<PictureKeyframe | undefined> {
    const { painter, channel, write } = this.#options
    const state = painter.snapshot()
    if (!state) {
      this.#retryAt = this.#bytes + RETRY
      return undefined
    }
    this.#written = 0
    await this.#writeBands(painter.framebuffer)
    const { width, height } = painter.framebuffer
    const picture: PictureState = { width, height, bands: this.#bands, painter: state }
    const block = await write(Buffer.from(JSON.stringify(picture)))
    this.#written += block[2]
    this.#bytes = 0
    this.#read = 0
    this.#retryAt = 0
    this.#painted = painter.painted
    return { channel, time, block, place, skip: [frames, bytes] }
  }

  async #writeBands(framebuffer: Framebuffer): Promise<void> {
    const { width, height } = framebuffer
    const size = `${width} × ${height}`
    const dirty = framebuffer.takeDirty()
    const rows = bandRows(width)
    const bands: Block[] = []
    for (let top = 0; top < height; top += rows) {
      const known = this.#size === size ? this.#bands[bands.length] : undefined
      const isSame = known && !dirty.some((one) => meets(one, top, rows))
      bands.push(isSame ? known : await this.#writeBand(framebuffer, top, Math.min(rows, height - top)))
    }
    this.#bands = bands
    this.#size = size
  }

  async #writeBand({ width, pixels }: Framebuffer, top: number, rows: number): Promise<Block> {
    const band = pixels.subarray(top * width, (top + rows) * width)
    const block = await this.#options.write(Buffer.from(band.buffer, band.byteOffset, band.byteLength))
    this.#written += block[2]
    return block
  }
}

/** Returns the rows of a band of a picture of this width; the last band may have fewer. */
export function bandRows(width: number): number {
  return Math.max(1, Math.floor(BAND_PIXELS / width))
}

function meets({ y, height }: Rectangle, top: number, rows: number): boolean {
  return y < top + rows && y + height > top
}

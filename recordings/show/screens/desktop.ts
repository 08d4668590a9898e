/**
 * A graphic channel for viewers: the whole picture for a new viewer, and then its changes. The target decides
 * the cost of drawing, so drawing has a limit of time, and yields to other sessions.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { encodeColourPng } from '../../../src/drawing/png.ts'
import { FRAME, type Frame } from '../../container/frames.ts'
import type { Framebuffer } from '../../decode/graphics/framebuffer.ts'
import { drawNote } from '../../decode/graphics/note.ts'
import type { Painter } from '../../decode/graphics/painter.ts'
import type { Rectangle } from '../../decode/graphics/rectangle.ts'

/** Limit of a shown desktop's pixels: enough for 4K. */
export const MAX_SHOWN = 2 ** 23
/** Milliseconds of drawing for any session, and the addition for each second of it. */
const BASE_MS = 10_000
const SHARE = 0.5
/** Milliseconds of drawing between two yields. */
const TURN_MS = 30
/** Zlib level: viewers want low latency. */
const LEVEL = 1

export interface PicturePart extends Rectangle {
  png: Uint8Array
}

/** The changed part of a desktop. */
export interface PictureChange {
  channel: number
  /** Width of the whole desktop. */
  width: number
  height: number
  /** Microseconds since the recording began. */
  time: number
  parts: PicturePart[]
}

export class WatchedDesktop {
  readonly #painter: Painter
  readonly #now: () => number
  #spent = 0
  #time = 0
  #isTooMuch = false
  #note: string | undefined
  #pointer: Rectangle | undefined

  /** `now`: milliseconds since any moment. */
  constructor(painter: Painter, now: () => number = () => performance.now()) {
    this.#painter = painter
    this.#now = now
  }

  async take(frame: Pick<Frame, 'type' | 'payload' | 'time'>): Promise<void> {
    this.#time = frame.time
    if (this.#isTooMuch) return
    if (frame.type !== FRAME.graphics) {
      this.#painter.apply(frame)
      return
    }
    let rest = frame.payload
    let began = this.#now()
    do {
      const before = this.#now()
      rest = rest.subarray(this.#painter.paint(rest))
      const after = this.#now()
      this.#spent += after - before
      this.#isTooMuch = this.#spent > BASE_MS + (frame.time / 1000) * SHARE
      if (after - began > TURN_MS) {
        await turn()
        began = this.#now()
      }
    } while (!this.#isTooMuch && (rest.length > 0 || this.#painter.isPaused))
  }

  /** Returns the whole picture as PNG, or undefined if it is too large to show. */
  draw(): { width: number; height: number; png: Uint8Array } | undefined {
    if (this.#isTooLarge) return undefined
    const picture = this.#picture()
    const { width, height } = picture
    return { width, height, png: encodeColourPng(picture, LEVEL) }
  }

  /** Returns the changes since the last call, or undefined if there are none. */
  changes(): Omit<PictureChange, 'channel'> | undefined {
    const { framebuffer, pointer } = this.#painter
    const { width, height } = framebuffer
    const dirty = framebuffer.takeDirty()
    const note = this.#noteOf()
    if (note !== this.#note) dirty.push({ x: 0, y: 0, width, height })
    this.#note = note
    if (!isSame(pointer, this.#pointer)) {
      // The desktop may have become smaller since.
      const were = this.#pointer && cut(this.#pointer, framebuffer)
      dirty.push(...[were, pointer].filter((one) => one !== undefined))
      this.#pointer = pointer
    }
    const areas = dirty.filter((one) => one.width > 0 && one.height > 0)
    if (areas.length === 0 || this.#isTooLarge) return undefined
    const picture = this.#picture()
    const parts = areas.map((area) => ({ ...area, png: encodeColourPng(partOf(picture, area), LEVEL) }))
    return { width, height, time: this.#time, parts }
  }

  get #isTooLarge(): boolean {
    const { width, height } = this.#painter.framebuffer
    return width * height > MAX_SHOWN
  }

  #noteOf(): string | undefined {
    if (this.#isTooMuch) return 'the picture stops here: the target sends more than there is time to draw'
    const { stopped } = this.#painter
    return stopped === undefined ? undefined : `the picture stops here: ${stopped}`
  }

  #picture(): Framebuffer {
    const picture = this.#painter.picture()
    const note = this.#noteOf()
    if (note === undefined) return picture
    const noted = picture.clone()
    drawNote(noted, note)
    return noted
  }
}

function partOf({ width, pixels }: Framebuffer, area: Rectangle) {
  const part = new Uint32Array(area.width * area.height)
  for (let y = 0; y < area.height; y++) {
    const from = (area.y + y) * width + area.x
    part.set(pixels.subarray(from, from + area.width), y * area.width)
  }
  return { width: area.width, height: area.height, bytes: new Uint8Array(part.buffer) }
}

function cut({ x, y, width, height }: Rectangle, to: { width: number; height: number }): Rectangle {
  return { x, y, width: Math.min(width, to.width - x), height: Math.min(height, to.height - y) }
}

function isSame(one: Rectangle | undefined, other: Rectangle | undefined): boolean {
  return (
    one?.x === other?.x && one?.y === other?.y && one?.width === other?.width && one?.height === other?.height
  )
}

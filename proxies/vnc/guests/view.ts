/** The state of one guest's viewer, and its updates in its own format and encoding. */
import { Buffer } from 'node:buffer'
import { DirtyRectangles } from '../../../recordings/decode/graphics/dirty.ts'
import type { Framebuffer } from '../../../recordings/decode/graphics/framebuffer.ts'
import type { Rectangle, Size } from '../../../recordings/decode/graphics/rectangle.ts'
import type { Area } from '../codec/client-messages.ts'
import { ENCODING } from '../codec/encodings.ts'
import { bytesPerPixel, type PixelFormat, RGB888 } from '../codec/pixel-format.ts'
import { putPixel } from '../codec/pixels.ts'
import {
  encodeColourMap,
  encodeDesktopName,
  encodeDesktopSize,
  encodeExtendedDesktopSize,
  encodeRectangleHeader,
  encodeUpdateHeader,
} from '../codec/server-encoder.ts'
import { COLOUR_MAP, Colours } from './colours.ts'
import { ZrleStream } from './zrle.ts'

/** Pixels of one update: a larger desktop takes several. */
export const UPDATE_PIXELS = 2 ** 20
/** Pixels of one rectangle. */
const BAND_PIXELS = 2 ** 17

/** Pixels of a rectangle of the desktop, row by row, as 0xAABBGGRR. */
export type ReadPixels = (rectangle: Rectangle) => Uint32Array

export class GuestView {
  /** The size that the viewer has. */
  #size: Size
  #format: PixelFormat = RGB888
  #colours = new Colours(RGB888)
  #encodings: readonly number[] = []
  #owesColourMap = false
  #owesSize = false
  #name: string | undefined
  readonly #dirty = new DirtyRectangles()
  readonly #zrle = new ZrleStream()
  #area: Area | undefined

  constructor(size: Size) {
    this.#size = size
    this.touch({ x: 0, y: 0, ...size })
  }

  get size(): Size {
    return this.#size
  }

  set format(format: PixelFormat) {
    this.#format = format
    this.#colours = new Colours(format)
    this.#owesColourMap = !format.isTrueColour
  }

  set encodings(encodings: readonly number[]) {
    this.#encodings = encodings
    // A viewer that may request another size receives the present one first.
    this.#owesSize = this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE)
  }

  set name(name: string) {
    this.#name = name
  }

  request(isIncremental: boolean, area: Area): void {
    this.#area = area
    if (!isIncremental) this.touch(area)
  }

  /** Marks pixels that the viewer does not have yet. */
  touch(rectangle: Rectangle): void {
    this.#dirty.add(rectangle)
  }

  /** Returns the next update, or undefined if the viewer has not requested one or has everything. */
  update(desktop: Size, read: ReadPixels): Buffer | undefined {
    if (!this.#area) return undefined
    const news = this.#news(desktop)
    // A viewer drops rectangles in the same update as a change of size (RFC 6143 7.8.2).
    const bands = news.isSize ? [] : this.#bands(desktop)
    if (news.rectangles.length + bands.length === 0) return undefined
    this.#area = undefined
    const map = this.#owesColourMap ? [encodeColourMap(0, COLOUR_MAP)] : []
    this.#owesColourMap = false
    return Buffer.concat([
      ...map,
      encodeUpdateHeader(news.rectangles.length + bands.length),
      ...news.rectangles,
      ...bands.map((band) => this.#encode(band, read)),
    ])
  }

  #knows(encoding: number): boolean {
    return this.#encodings.includes(encoding)
  }

  #news(desktop: Size): { rectangles: Buffer[]; isSize: boolean } {
    const rectangles: Buffer[] = []
    if (this.#name !== undefined && this.#knows(ENCODING.DESKTOP_NAME)) {
      rectangles.push(encodeDesktopName(this.#name))
      this.#name = undefined
    }
    const { width, height } = desktop
    const isOther = width !== this.#size.width || height !== this.#size.height
    const isExtended = this.#knows(ENCODING.EXTENDED_DESKTOP_SIZE)
    const isSize =
      (isOther && (isExtended || this.#knows(ENCODING.DESKTOP_SIZE))) || (isExtended && this.#owesSize)
    if (!isSize) return { rectangles, isSize }
    this.#owesSize = false
    this.#size = { width, height }
    if (isOther) this.touch({ x: 0, y: 0, width, height })
    const screen = { id: 0, x: 0, y: 0, width, height, flags: 0 }
    rectangles.push(
      isExtended
        ? encodeExtendedDesktopSize(0, 0, width, height, [screen])
        : encodeDesktopSize(width, height),
    )
    return { rectangles, isSize }
  }

  /**
   * Takes some of the dirty area; the rest stays dirty. A viewer that cannot change its size gets the part
   * that fits.
   */
  #bands(desktop: Size): Rectangle[] {
    const shown = {
      width: Math.min(desktop.width, this.#size.width),
      height: Math.min(desktop.height, this.#size.height),
    }
    const bands: Rectangle[] = []
    let room = UPDATE_PIXELS
    for (const { x, y, width, height } of this.#dirty.take(shown)) {
      const rows = Math.max(1, Math.floor(BAND_PIXELS / width))
      let from = 0
      for (; from < height && room > 0; from += rows) {
        const band = { x, y: y + from, width, height: Math.min(rows, height - from) }
        bands.push(band)
        room -= band.width * band.height
      }
      if (from < height) this.touch({ x, y: y + from, width, height: height - from })
    }
    return bands
  }

  #encode(band: Rectangle, read: ReadPixels): Buffer {
    const { width, height } = band
    const pixels = read(band)
    for (let at = 0; at < pixels.length; at++) pixels[at] = this.#colours.of(pixels[at]!)
    if (this.#knows(ENCODING.ZRLE)) {
      const data = this.#zrle.rectangle(pixels, width, height, this.#format)
      return Buffer.concat([encodeRectangleHeader(band, ENCODING.ZRLE), data])
    }
    const data = Buffer.allocUnsafe(pixels.length * bytesPerPixel(this.#format))
    let at = 0
    for (const pixel of pixels) at = putPixel(data, at, pixel, this.#format)
    return Buffer.concat([encodeRectangleHeader(band, ENCODING.RAW), data])
  }
}

/** Returns a copy of those pixels. */
export function pixelsOf(framebuffer: Framebuffer, { x, y, width, height }: Rectangle): Uint32Array {
  const pixels = new Uint32Array(width * height)
  for (let row = 0; row < height; row++) {
    const from = (y + row) * framebuffer.width + x
    pixels.set(framebuffer.pixels.subarray(from, from + width), row * width)
  }
  return pixels
}

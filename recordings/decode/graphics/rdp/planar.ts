/**
 * Planar bitmaps of 32 bits (RDP 6.0, MS-RDPEGDI 2.2.2.5.1, 3.1.9): red, green and blue, or luma and chroma,
 * each in its own plane. A plane is raw, or run-length encoded row by row as differences to the previous row.
 */
import { MalformedGraphics } from '../malformed.ts'

const HEADER = { colourLoss: 0x07, subsampled: 0x08, encoded: 0x10, withoutAlpha: 0x20 } as const
const OPAQUE = 0xff << 24

/**
 * Returns the pixels' colours as 0xAABBGGRR, opaque, in the order of the rows (the lowest first in updates).
 * The caller limits `width * height`. Throws MalformedGraphics.
 */
export function decodePlanar(source: Uint8Array, width: number, height: number): Uint32Array<ArrayBuffer> {
  const header = source[0]
  if (header === undefined) throw new MalformedGraphics('planar bitmap: expected a header, got nothing')
  const loss = header & HEADER.colourLoss
  const isSubsampled = (header & HEADER.subsampled) !== 0
  if (isSubsampled && loss === 0) {
    throw new MalformedGraphics('planar bitmap: expected chroma that is subsampled, got red, green and blue')
  }
  const planes = new Planes(source, (header & HEADER.encoded) !== 0)
  // Skip alpha: it does not show on a desktop.
  if ((header & HEADER.withoutAlpha) === 0) planes.next(width, height)
  const first = planes.next(width, height)
  const [innerWidth, innerHeight] = isSubsampled ? [(width + 1) >> 1, (height + 1) >> 1] : [width, height]
  const second = planes.next(innerWidth, innerHeight)
  const third = planes.next(innerWidth, innerHeight)
  if (loss === 0) return joined(first, second, third)
  return fromLuma(first, second, third, { width, loss, isSubsampled })
}

function joined(red: Uint8Array, green: Uint8Array, blue: Uint8Array): Uint32Array<ArrayBuffer> {
  const pixels = new Uint32Array(red.length)
  for (let at = 0; at < pixels.length; at++) {
    pixels[at] = OPAQUE | (blue[at]! << 16) | (green[at]! << 8) | red[at]!
  }
  return pixels
}

interface Chroma {
  width: number
  /** Lost bits of chroma, 1 to 7. */
  loss: number
  /** Set if there is one value of chroma for four pixels. */
  isSubsampled: boolean
}

/** Converts Y, Co and Cg to red, green and blue (3.1.9.1.2). */
function fromLuma(
  luma: Uint8Array,
  orange: Uint8Array,
  green: Uint8Array,
  { width, loss, isSubsampled }: Chroma,
): Uint32Array<ArrayBuffer> {
  const pixels = new Uint32Array(luma.length)
  const half = isSubsampled ? 1 : 0
  const innerWidth = (width + half) >> half
  // The formula adds half of a chroma value, so the shift is one bit less. The top bit then is its sign.
  const back = 24 + loss - 1
  for (let at = 0, y = 0; at < pixels.length; y++) {
    const row = (y >> half) * innerWidth
    for (let x = 0; x < width; x++, at++) {
      const inner = row + (x >> half)
      const co = (orange[inner]! << back) >> 24
      const cg = (green[inner]! << back) >> 24
      const rest = luma[at]! - cg
      const [r, g, b] = [clamped(rest + co), clamped(luma[at]! + cg), clamped(rest - co)]
      pixels[at] = OPAQUE | (b << 16) | (g << 8) | r
    }
  }
  return pixels
}

const clamped = (value: number): number => Math.min(0xff, Math.max(0, value))

/** Reads the planes in order. */
class Planes {
  readonly #source: Uint8Array
  readonly #isEncoded: boolean
  #at = 1

  constructor(source: Uint8Array, isEncoded: boolean) {
    this.#source = source
    this.#isEncoded = isEncoded
  }

  next(width: number, height: number): Uint8Array {
    if (!this.#isEncoded) return this.#take(width * height)
    const plane = new Uint8Array(width * height)
    for (let row = 0; row < height; row++) this.#row(plane, row * width, width, row === 0)
    return plane
  }

  /**
   * Reads segments: a byte with two lengths (2.2.2.5.1.1), that many values, then repeats of the last value.
   * Run lengths 1 and 2 stand for long runs. Allocates nothing, since a picture has very many segments.
   */
  #row(plane: Uint8Array, begin: number, width: number, isFirst: boolean): void {
    const source = this.#source
    const end = begin + width
    let value = 0
    for (let at = begin; at < end; ) {
      const from = this.#skip(1)
      const control = source[from]!
      const low = control & 0x0f
      const isLong = low === 1 || low === 2
      const raw = isLong ? 0 : control >> 4
      const run = isLong ? (control >> 4) + 16 * low : low
      if (end - at < raw + run) {
        throw new MalformedGraphics(
          `planar bitmap: expected ${end - at} more values in a row, got ${raw + run}`,
        )
      }
      const values = this.#skip(raw)
      for (let step = 0; step < raw; step++, at++) {
        value = isFirst ? source[values + step]! : difference(source[values + step]!)
        plane[at] = isFirst ? value : plane[at - width]! + value
      }
      for (const last = at + run; at < last; at++) plane[at] = isFirst ? value : plane[at - width]! + value
    }
  }

  #take(count: number): Uint8Array {
    const begin = this.#skip(count)
    return this.#source.subarray(begin, this.#at)
  }

  /** Skips the next bytes and returns their beginning. */
  #skip(count: number): number {
    const begin = this.#at
    if (this.#source.length - begin < count) {
      throw new MalformedGraphics(
        `planar bitmap: expected ${count} bytes at ${begin}, got ${this.#source.length - begin}`,
      )
    }
    this.#at = begin + count
    return begin
  }
}

/** Decodes a difference: its lowest bit is the sign. */
const difference = (value: number): number => (value & 1 ? -((value >> 1) + 1) : value >> 1)

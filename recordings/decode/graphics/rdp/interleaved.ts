/**
 * Interleaved RLE of 8, 15, 16 and 24 bits (MS-RDPBCGR 2.2.9.1.1.3.1.2.4, 3.1.9): orders that fill, repeat
 * the previous row, or combine it with a colour by exclusive or.
 */
import { MalformedGraphics } from '../malformed.ts'

export type InterleavedDepth = 8 | 15 | 16 | 24

const WHITE: Readonly<Record<InterleavedDepth, number>> = { 8: 0xff, 15: 0x7fff, 16: 0xffff, 24: 0xff_ffff }
const BLACK = 0

/** Kinds of orders; the `set…` orders read the foreground colour first. */
const ORDER = {
  background: 0,
  foreground: 1,
  image: 2,
  colour: 3,
  pixels: 4,
  setForeground: 6,
  setImage: 7,
  dithered: 8,
  image1: 9,
  image2: 10,
  white: 13,
  black: 14,
} as const

/** Codes of four bits at the top of a byte. */
const LITE: Readonly<Record<number, number>> = {
  12: ORDER.setForeground,
  13: ORDER.setImage,
  14: ORDER.dithered,
}
/** Orders of one byte: the low bits of codes from 0xf0 on. */
const SPECIAL: ReadonlySet<number> = new Set([ORDER.image1, ORDER.image2, ORDER.white, ORDER.black])
/** The same orders with a length of two bytes. */
const LONG: ReadonlySet<number> = new Set([
  ORDER.background,
  ORDER.foreground,
  ORDER.image,
  ORDER.colour,
  ORDER.pixels,
  ORDER.setForeground,
  ORDER.setImage,
  ORDER.dithered,
])
const IMAGE_1 = 0b011
const IMAGE_2 = 0b101

export interface Interleaved {
  /** Values of the pixels, the lowest row first. */
  pixels: Uint32Array<ArrayBuffer>
  /** Number of decoded pixels, from the first one on. */
  count: number
  /** Set after an unknown order, or if there were more or fewer pixels than expected. */
  flaw: MalformedGraphics | undefined
}

/** Decodes a bitmap. The caller limits `width * height`. The part before a flaw is drawn, as clients do. */
export function decodeInterleaved(
  source: Uint8Array,
  width: number,
  height: number,
  depth: InterleavedDepth,
): Interleaved {
  const decoder = new Decoder(source, width, height, depth)
  const flaw = flawOf(() => decoder.decode())
  return { pixels: decoder.pixels, count: decoder.count, flaw }
}

function flawOf(work: () => void): MalformedGraphics | undefined {
  try {
    work()
    return undefined
  } catch (error) {
    if (error instanceof MalformedGraphics) return error
    throw error
  }
}

class Decoder {
  readonly pixels: Uint32Array<ArrayBuffer>
  readonly #source: Uint8Array
  readonly #width: number
  readonly #pixelLength: number
  readonly #white: number
  #from = 0
  #to = 0
  #foreground: number
  /** Set if the order began in the first row, which has no row before it. */
  #isFirstRow = true

  constructor(source: Uint8Array, width: number, height: number, depth: InterleavedDepth) {
    this.pixels = new Uint32Array(width * height)
    this.#source = source
    this.#width = width
    this.#pixelLength = Math.ceil(depth / 8)
    this.#white = WHITE[depth]
    this.#foreground = this.#white
  }

  get count(): number {
    return this.#to
  }

  /** Throws MalformedGraphics. */
  decode(): void {
    // A run of background after another begins with a foreground pixel: otherwise they would be one run.
    let isAfterBackground = false
    while (this.#from < this.#source.length) {
      if (this.#isFirstRow && this.#to >= this.#width) {
        this.#isFirstRow = false
        isAfterBackground = false
      }
      const code = this.#byte()
      const order = orderOf(code)
      if (order === ORDER.background) {
        this.#background(this.#length(code, order), isAfterBackground)
        isAfterBackground = true
      } else {
        this.#other(code, order)
        isAfterBackground = false
      }
    }
    if (this.#to !== this.pixels.length) {
      throw new MalformedGraphics(
        `interleaved bitmap: expected ${this.pixels.length} pixels, got ${this.#to}`,
      )
    }
  }

  #other(code: number, order: number): void {
    switch (order) {
      case ORDER.image1:
        this.#image(IMAGE_1, 8)
        return
      case ORDER.image2:
        this.#image(IMAGE_2, 8)
        return
      case ORDER.white:
        this.#fill(1, this.#white)
        return
      case ORDER.black:
        this.#fill(1, BLACK)
        return
    }
    const length = this.#length(code, order)
    if (order === ORDER.setForeground || order === ORDER.setImage) this.#foreground = this.#pixel()
    switch (order) {
      case ORDER.foreground:
      case ORDER.setForeground:
        this.#foregroundRun(length)
        return
      case ORDER.image:
      case ORDER.setImage:
        for (let left = length; left > 0; left -= 8) this.#image(this.#byte(), Math.min(8, left))
        return
      case ORDER.colour:
        this.#fill(length, this.#pixel())
        return
      case ORDER.dithered:
        this.#dithered(length)
        return
      case ORDER.pixels:
        this.#room(length)
        for (let left = length; left > 0; left--) this.pixels[this.#to++] = this.#pixel()
    }
  }

  #background(length: number, withForeground: boolean): void {
    let left = length
    if (withForeground && left > 0) {
      this.#foregroundRun(1)
      left -= 1
    }
    if (this.#isFirstRow) this.#fill(left, BLACK)
    else this.#repeat(left)
  }

  /**
   * Copies pixels of the previous row, at most a row at a time, since the copied pixels may be new
   * themselves.
   */
  #repeat(length: number): void {
    this.#room(length)
    for (let left = length; left > 0; ) {
      const count = Math.min(left, this.#width)
      const above = this.#to - this.#width
      this.pixels.copyWithin(this.#to, above, above + count)
      this.#to += count
      left -= count
    }
  }

  #foregroundRun(length: number): void {
    if (this.#isFirstRow) {
      this.#fill(length, this.#foreground)
      return
    }
    this.#room(length)
    for (let left = length; left > 0; left--) {
      this.pixels[this.#to] = this.pixels[this.#to - this.#width]! ^ this.#foreground
      this.#to += 1
    }
  }

  /** Reads a bit for each pixel, the lowest first: foreground over the previous row, or that row. */
  #image(bits: number, count: number): void {
    this.#room(count)
    for (let bit = 0; bit < count; bit++) {
      const above = this.#isFirstRow ? BLACK : this.pixels[this.#to - this.#width]!
      this.pixels[this.#to++] = (bits >> bit) & 1 ? above ^ this.#foreground : above
    }
  }

  #dithered(length: number): void {
    const [one, other] = [this.#pixel(), this.#pixel()]
    this.#room(2 * length)
    for (let left = length; left > 0; left--) {
      this.pixels[this.#to++] = one
      this.pixels[this.#to++] = other
    }
  }

  #fill(length: number, value: number): void {
    this.#room(length)
    this.pixels.fill(value, this.#to, this.#to + length)
    this.#to += length
  }

  /** Returns the pixels of the order, or pairs of them (2.2.9.1.1.3.1.2.4). */
  #length(code: number, order: number): number {
    if (0xf0 <= code) return this.#byte() | (this.#byte() << 8)
    const [bits, more] = 0xc0 <= code ? [0x0f, 16] : [0x1f, 32]
    const length = code & bits
    if (order === ORDER.image || order === ORDER.setImage) return length === 0 ? this.#byte() + 1 : length * 8
    return length === 0 ? this.#byte() + more : length
  }

  #room(length: number): void {
    if (this.#to + length <= this.pixels.length) return
    throw new MalformedGraphics(
      `interleaved bitmap: expected ${this.pixels.length} pixels, got at least ${this.#to + length}`,
    )
  }

  #pixel(): number {
    let value = 0
    for (let at = 0; at < this.#pixelLength; at++) value |= this.#byte() << (8 * at)
    return value
  }

  #byte(): number {
    const byte = this.#source[this.#from++]
    if (byte === undefined) {
      throw new MalformedGraphics('interleaved bitmap: expected the rest of an order, got the end')
    }
    return byte
  }
}

function orderOf(code: number): number {
  const low = code & 0x0f
  const order =
    code < 0xa0
      ? code >> 5
      : code < 0xf0
        ? LITE[code >> 4]
        : LONG.has(low) || SPECIAL.has(low)
          ? low
          : undefined
  if (order !== undefined) return order
  throw new MalformedGraphics(`interleaved bitmap: expected an order, got 0x${code.toString(16)}`)
}

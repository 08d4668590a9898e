/** Converts a VNC target's pixels (PIXEL_FORMAT, RFC 6143 7.4) to the framebuffer's colours. */
import { BLACK, rgb } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'

export const PIXEL_FORMAT_LENGTH = 16
const BYTE = 0xff

export interface PixelFormat {
  bitsPerPixel: 8 | 16 | 32
  depth: number
  isBigEndian: boolean
  isTrueColour: boolean
  redMax: number
  greenMax: number
  blueMax: number
  redShift: number
  greenShift: number
  blueShift: number
}

/**
 * Reads pixels of one width: converts `count` pixels from `source`, the first at `from`, to colours in
 * `target`.
 */
export interface PixelReader {
  /** Bytes of a pixel. */
  readonly length: number
  read(source: Uint8Array, from: number, target: Uint32Array, to: number, count: number): void
  one(source: Uint8Array, from: number): number
}

/** Parses the payload of a `pixel_format` frame. Throws MalformedGraphics. */
export function parsePixelFormat(bytes: Uint8Array): PixelFormat {
  if (bytes.length !== PIXEL_FORMAT_LENGTH) {
    throw new MalformedGraphics(
      `expected a pixel format of ${PIXEL_FORMAT_LENGTH} bytes, got ${bytes.length}`,
    )
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const bitsPerPixel = bytes[0]
  if (bitsPerPixel !== 8 && bitsPerPixel !== 16 && bitsPerPixel !== 32) {
    throw new MalformedGraphics(`expected pixels of 8, 16 or 32 bits, got ${bitsPerPixel}`)
  }
  const format: PixelFormat = {
    bitsPerPixel,
    depth: bytes[1]!,
    isBigEndian: bytes[2] !== 0,
    isTrueColour: bytes[3] !== 0,
    redMax: view.getUint16(4),
    greenMax: view.getUint16(6),
    blueMax: view.getUint16(8),
    redShift: bytes[10]!,
    greenShift: bytes[11]!,
    blueShift: bytes[12]!,
  }
  const shifts = [format.redShift, format.greenShift, format.blueShift]
  if (format.isTrueColour && shifts.some((shift) => shift >= bitsPerPixel)) {
    throw new MalformedGraphics(
      `expected shifts inside ${bitsPerPixel} bits, got ${shifts.join(', ')} in a pixel format`,
    )
  }
  return format
}

/** The readers of a format: of its full pixels, and of the short forms in ZRLE and Tight. */
export class PixelReaders {
  readonly format: PixelFormat
  /** PIXEL. */
  readonly pixel: PixelReader
  /** CPIXEL of ZRLE (RFC 6143 7.7.5). */
  readonly compact: PixelReader
  /** TPIXEL of Tight (RFC 6143 7.7.6 of the community's text). */
  readonly tight: PixelReader
  /** True if TPIXEL is red, green, blue, a byte each. */
  readonly isTight24: boolean
  readonly #colours: Uint32Array | undefined

  /** `colours`: the current colour map, as returned by `colours`. */
  constructor(format: PixelFormat, colours?: Uint32Array) {
    const length = format.bitsPerPixel / 8
    this.format = format
    if (!format.isTrueColour) {
      this.#colours = new Uint32Array(2 ** Math.min(16, format.bitsPerPixel)).fill(BLACK)
      if (colours) this.#colours.set(colours.subarray(0, this.#colours.length))
    }
    this.pixel = this.#reader(length, 0)
    this.compact = hasCompactPixels(format) ? this.#reader(3, compactShift(format)) : this.pixel
    this.isTight24 = is888(format) && format.depth === 24
    this.tight = this.isTight24 ? new TripleReader(3, 0, 1, 2) : this.pixel
  }

  /** The colour map. Undefined if pixels contain their colours themselves. */
  get colours(): Uint32Array | undefined {
    return this.#colours
  }

  /** Stores an entry of SetColourMapEntries: 16 bits for each component. */
  setColour(at: number, red: number, green: number, blue: number): void {
    if (this.#colours && at < this.#colours.length) this.#colours[at] = rgb(red >> 8, green >> 8, blue >> 8)
  }

  /** Returns a pixel's colour by its value: red, green and blue at their shifts. */
  colourOf(value: number): number {
    const { format } = this
    if (this.#colours) return this.#colours[value % this.#colours.length]!
    return rgb(
      scaled(value >>> format.redShift, format.redMax),
      scaled(value >>> format.greenShift, format.greenMax),
      scaled(value >>> format.blueShift, format.blueMax),
    )
  }

  #reader(length: number, shift: number): PixelReader {
    const { format } = this
    if (is888(format)) {
      const place = (bit: number) => {
        const byte = (bit - shift) / 8
        return format.isBigEndian ? length - 1 - byte : byte
      }
      return new TripleReader(
        length,
        place(format.redShift),
        place(format.greenShift),
        place(format.blueShift),
      )
    }
    if (length > 2) {
      return new ValueReader(length, format.isBigEndian, (value) => this.colourOf((value << shift) >>> 0))
    }
    const table =
      this.#colours ?? Uint32Array.from({ length: 2 ** (8 * length) }, (_, value) => this.colourOf(value))
    return new TableReader(length, format.isBigEndian, table)
  }
}

/** Returns whether each component is a whole byte of a pixel of 32 bits. */
function is888(format: PixelFormat): boolean {
  const { redShift, greenShift, blueShift, redMax, greenMax, blueMax } = format
  return (
    format.isTrueColour &&
    format.bitsPerPixel === 32 &&
    [redMax, greenMax, blueMax].every((max) => max === BYTE) &&
    [redShift, greenShift, blueShift].every((shift) => shift % 8 === 0)
  )
}

/** Returns whether one byte of a pixel of 32 bits has no meaning, so that ZRLE leaves it out. */
function hasCompactPixels(format: PixelFormat): boolean {
  if (!format.isTrueColour || format.bitsPerPixel !== 32 || format.depth > 24) return false
  return fitsLow(format) || fitsHigh(format)
}

/** Returns the bits that are missing below the three bytes of a compact pixel. */
function compactShift(format: PixelFormat): number {
  return fitsLow(format) ? 0 : 8
}

function fitsLow(format: PixelFormat): boolean {
  return parts(format).every(({ max, shift }) => max * 2 ** shift < 2 ** 24)
}

function fitsHigh(format: PixelFormat): boolean {
  return parts(format).every(({ shift }) => shift > 7)
}

function parts(format: PixelFormat): { max: number; shift: number }[] {
  return [
    { max: format.redMax, shift: format.redShift },
    { max: format.greenMax, shift: format.greenShift },
    { max: format.blueMax, shift: format.blueShift },
  ]
}

/** Scales to a byte, as TigerVNC's viewer does. */
function scaled(value: number, max: number): number {
  return max === 0 ? 0 : Math.floor(((value & max) * BYTE) / max)
}

/** Reads pixels with a byte for each component. */
class TripleReader implements PixelReader {
  readonly length: number
  readonly #red: number
  readonly #green: number
  readonly #blue: number

  constructor(length: number, red: number, green: number, blue: number) {
    this.length = length
    this.#red = red
    this.#green = green
    this.#blue = blue
  }

  read(source: Uint8Array, from: number, target: Uint32Array, to: number, count: number): void {
    const { length } = this
    const red = from + this.#red
    const green = from + this.#green
    const blue = from + this.#blue
    for (let pixel = 0, at = 0; pixel < count; pixel++, at += length) {
      target[to + pixel] = BLACK | (source[blue + at]! << 16) | (source[green + at]! << 8) | source[red + at]!
    }
  }

  one(source: Uint8Array, from: number): number {
    return rgb(source[from + this.#red]!, source[from + this.#green]!, source[from + this.#blue]!)
  }
}

/** Reads pixels of 8 or 16 bits with a table of all their colours. */
class TableReader implements PixelReader {
  readonly length: number
  readonly #low: number
  readonly #table: Uint32Array

  constructor(length: number, isBigEndian: boolean, table: Uint32Array) {
    this.length = length
    this.#low = isBigEndian ? length - 1 : 0
    this.#table = table
  }

  read(source: Uint8Array, from: number, target: Uint32Array, to: number, count: number): void {
    for (let pixel = 0; pixel < count; pixel++) {
      target[to + pixel] = this.one(source, from + pixel * this.length)
    }
  }

  one(source: Uint8Array, from: number): number {
    const low = source[from + this.#low]!
    return this.#table[this.length === 1 ? low : (source[from + 1 - this.#low]! << 8) | low]!
  }
}

/** Reads any other pixels of three or four bytes. */
class ValueReader implements PixelReader {
  readonly length: number
  readonly #isBigEndian: boolean
  readonly #colourOf: (value: number) => number

  constructor(length: number, isBigEndian: boolean, colourOf: (value: number) => number) {
    this.length = length
    this.#isBigEndian = isBigEndian
    this.#colourOf = colourOf
  }

  read(source: Uint8Array, from: number, target: Uint32Array, to: number, count: number): void {
    for (let pixel = 0; pixel < count; pixel++) {
      target[to + pixel] = this.one(source, from + pixel * this.length)
    }
  }

  one(source: Uint8Array, from: number): number {
    let value = 0
    for (let step = 0; step < this.length; step++) {
      const at = this.#isBigEndian ? step : this.length - 1 - step
      value = value * 256 + source[from + at]!
    }
    return this.#colourOf(value)
  }
}

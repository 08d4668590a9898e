/**
 * Interleaved RLE of 15, 16 and 24 bits per pixel (MS-RDPBCGR 2.2.9.1.1.3.1.2.4). Uses two of its orders,
 * which suit screens of few colours: runs of one colour, and uncompressed pixels.
 */
import { Buffer } from 'node:buffer'

/** A run has two or three bytes before its colour: shorter ones are cheaper as pixels. */
const WORTH_A_RUN = 3
/** Lengths that fit an order's first byte, one more byte, and two more. */
const SHORT_LIMIT = 31
const BYTE_LIMIT = 32 + 255
const LIMIT = 0xffff
const HEAD = 3

const COLOUR_RUN = { short: 0x60, long: 0xf3 } as const
const COLOUR_IMAGE = { short: 0x80, long: 0xf4 } as const

/**
 * `pixels`: indexes into `colours`, in the order of sending: from the left, the lowest row first. A colour
 * has two or three bytes.
 */
export function encodeRuns(pixels: Uint8Array, colours: Uint32Array, colourBytes: 2 | 3): Buffer {
  // A pixel costs at most one head and one colour.
  const out = new Orders(pixels.length * (colourBytes + HEAD), colours, colourBytes)
  let imageFrom = 0
  for (let at = 0; at < pixels.length; ) {
    const pixel = pixels[at]!
    const limit = Math.min(pixels.length, at + LIMIT)
    let end = at + 1
    while (end < limit && pixels[end] === pixel) end++
    if (WORTH_A_RUN <= end - at) {
      out.image(pixels, imageFrom, at)
      out.run(pixel, end - at)
      imageFrom = end
    }
    at = end
  }
  out.image(pixels, imageFrom, pixels.length)
  return out.finish()
}

class Orders {
  readonly #bytes: Buffer
  readonly #colours: Uint32Array
  readonly #isLong: boolean
  #at = 0

  constructor(most: number, colours: Uint32Array, colourBytes: 2 | 3) {
    this.#bytes = Buffer.allocUnsafe(most)
    this.#colours = colours
    this.#isLong = colourBytes === 3
  }

  run(pixel: number, length: number): void {
    this.#head(COLOUR_RUN, length)
    this.#colour(pixel)
  }

  image(pixels: Uint8Array, begin: number, end: number): void {
    for (let from = begin; from < end; from += LIMIT) {
      const to = Math.min(end, from + LIMIT)
      this.#head(COLOUR_IMAGE, to - from)
      for (let at = from; at < to; at++) this.#colour(pixels[at]!)
    }
  }

  finish(): Buffer {
    return Buffer.from(this.#bytes.subarray(0, this.#at))
  }

  #head(code: { short: number; long: number }, length: number): void {
    if (length <= SHORT_LIMIT) this.#bytes[this.#at++] = code.short | length
    else if (length <= BYTE_LIMIT) {
      this.#bytes[this.#at++] = code.short
      this.#bytes[this.#at++] = length - 32
    } else {
      this.#bytes[this.#at++] = code.long
      this.#bytes[this.#at++] = length & 0xff
      this.#bytes[this.#at++] = length >> 8
    }
  }

  #colour(pixel: number): void {
    const colour = this.#colours[pixel]!
    this.#bytes[this.#at++] = colour & 0xff
    this.#bytes[this.#at++] = (colour >> 8) & 0xff
    if (this.#isLong) this.#bytes[this.#at++] = colour >> 16
  }
}

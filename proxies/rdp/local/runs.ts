/**
 * Interleaved RLE of 16 bits a pixel (MS-RDPBCGR 2.2.9.1.1.3.1.2.4), written with the two of its orders that suit
 * screens of few colours: runs of one colour, and pixels as they are.
 */
import { Buffer } from 'node:buffer'

/** A run has two or three bytes before its colour: shorter ones are cheaper as pixels. */
const WORTH_A_RUN = 3
/** Lengths that an order's first byte, one more, and two more can hold. */
const SHORT_LIMIT = 31
const BYTE_LIMIT = 32 + 255
const LIMIT = 0xffff

const COLOUR_RUN = { short: 0x60, long: 0xf3 } as const
const COLOUR_IMAGE = { short: 0x80, long: 0xf4 } as const

/** Pixels in the order in which they are sent: from the left, the lowest row first. */
export function encodeRuns(pixels: Uint16Array): Buffer {
  const out: number[] = []
  let imageFrom = 0
  const image = (to: number): void => {
    for (let from = imageFrom; from < to; from += LIMIT) {
      const end = Math.min(to, from + LIMIT)
      writeHead(out, COLOUR_IMAGE, end - from)
      for (let at = from; at < end; at++) writePixel(out, pixels[at]!)
    }
  }
  for (let at = 0; at < pixels.length; ) {
    let end = at + 1
    while (end < pixels.length && pixels[end] === pixels[at] && end - at < LIMIT) end++
    if (WORTH_A_RUN <= end - at) {
      image(at)
      writeHead(out, COLOUR_RUN, end - at)
      writePixel(out, pixels[at]!)
      imageFrom = end
    }
    at = end
  }
  image(pixels.length)
  return Buffer.from(out)
}

function writeHead(out: number[], code: { short: number; long: number }, length: number): void {
  if (length <= SHORT_LIMIT) out.push(code.short | length)
  else if (length <= BYTE_LIMIT) out.push(code.short, length - 32)
  else out.push(code.long, length & 0xff, length >> 8)
}

function writePixel(out: number[], pixel: number): void {
  out.push(pixel & 0xff, pixel >> 8)
}

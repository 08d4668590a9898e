/**
 * Planar bitmaps of 32 bits per pixel (MS-RDPEGDI 2.2.2.5.1): each plane is run-length encoded by row, as
 * differences from the row before. Includes an unused alpha plane, which old clients require.
 */
import { Buffer } from 'node:buffer'

const ENCODED = 0x10
const PLANES = 4
const OPAQUE = 0xff
/** Raw values per segment, and repetitions of the last of them. */
const RAW_LIMIT = 15
const SHORT_RUN = 15
/** A segment of only a run: with low bits 1 or 2, the length is that many times 16, plus the high bits. */
const RUN_LIMIT = 47
/** Shorter runs would be ambiguous with those. */
const SHORTEST_RUN = 3

/** Returns the values of alpha, red, green and blue, by index of colour. `colours`: three bytes each. */
export function planesOf(colours: Uint8Array): Uint8Array[] {
  const count = colours.length / 3
  return [
    new Uint8Array(count).fill(OPAQUE),
    ...[0, 1, 2].map((part) =>
      Uint8Array.from({ length: count }, (_, colour) => colours[3 * colour + part]!),
    ),
  ]
}

/** `pixels`: indexes of colours, in the order of sending, the lowest row first. */
export function encodePlanes(pixels: Uint8Array, width: number, planes: readonly Uint8Array[]): Buffer {
  const isRepeated: boolean[] = []
  for (let row = 0; row < pixels.length; row += width) isRepeated.push(isLikeBefore(pixels, row, width))
  // At most one control byte per value.
  const out = Buffer.allocUnsafe(1 + PLANES * 2 * pixels.length)
  out[0] = ENCODED
  const values = new Uint8Array(width)
  const nothing = new Uint8Array(width)
  let to = 1
  for (const plane of planes) {
    for (const [row, isSame] of isRepeated.entries()) {
      const begin = row * width
      if (isSame) to = encodeRow(out, to, nothing)
      else {
        for (let x = 0, at = begin; x < width; x++, at++) {
          const value = plane[pixels[at]!]!
          values[x] = row === 0 ? value : folded(value - plane[pixels[at - width]!]!)
        }
        to = encodeRow(out, to, values)
      }
    }
  }
  return Buffer.from(out.subarray(0, to))
}

function isLikeBefore(pixels: Uint8Array, row: number, width: number): boolean {
  if (row === 0) return false
  for (let at = row; at < row + width; at++) if (pixels[at] !== pixels[at - width]) return false
  return true
}

/** Returns a difference with its sign in the lowest bit. */
function folded(difference: number): number {
  const signed = (difference << 24) >> 24
  return signed < 0 ? ((-signed - 1) << 1) | 1 : signed << 1
}

/** Returns the offset after the encoded row. */
function encodeRow(out: Buffer, begin: number, values: Uint8Array): number {
  let to = begin
  let last = 0
  for (let at = 0; at < values.length; ) {
    const run = Math.min(RUN_LIMIT, runOf(values, at, last))
    if (SHORTEST_RUN <= run) {
      if (run <= SHORT_RUN) out[to++] = run
      else out[to++] = run < 32 ? ((run - 16) << 4) | 1 : ((run - 32) << 4) | 2
      at += run
      continue
    }
    let end = at
    let following = 0
    while (end < values.length && end - at < RAW_LIMIT && following < SHORTEST_RUN) {
      last = values[end++]!
      following = runOf(values, end, last)
    }
    const repeated = following < SHORTEST_RUN ? 0 : Math.min(SHORT_RUN, following)
    out[to++] = ((end - at) << 4) | repeated
    while (at < end) out[to++] = values[at++]!
    at += repeated
  }
  return to
}

/** Returns how often the value repeats from this position. */
function runOf(values: Uint8Array, from: number, value: number): number {
  let to = from
  while (to < values.length && values[to] === value) to++
  return to - from
}

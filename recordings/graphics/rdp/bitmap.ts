/** Bitmap updates (MS-RDPBCGR 2.2.9.1.1.3.1.2): rectangles of pixels, raw or compressed. */
import { type Decoding, type Easel, PAUSE } from '../decoding.ts'
import type { Framebuffer } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import { toColours } from './colours.ts'
import { decodeInterleaved, type InterleavedDepth } from './interleaved.ts'
import { decodePlanar } from './planar.ts'
import { UpdateReader } from './reader.ts'

/** Pixels of one bitmap: a desktop of 4K in one piece has twice as many, and servers send tiles or strips. */
export const MAX_BITMAP_PIXELS = 2 ** 22

const WHAT = 'bitmap'
const FLAG = { compressed: 0x0001, withoutHeader: 0x0400 } as const
const COMPRESSION_HEADER = 8
const DEPTHS: ReadonlySet<number> = new Set([8, 15, 16, 24, 32])

interface Bitmap {
  /** Where it goes, the last column and row included. */
  left: number
  top: number
  right: number
  bottom: number
  width: number
  height: number
  depth: number
  isCompressed: boolean
  data: Uint8Array
}

/** `u16 type, u16 count`, then so many bitmaps. What lies outside of the framebuffer is left out. */
export function* paintBitmaps(data: Uint8Array, easel: Easel, palette: Uint32Array): Decoding {
  const reader = new UpdateReader(data, 'bitmap update')
  reader.u16()
  for (let count = reader.u16(); count > 0; count--) {
    const bitmap = parseBitmap(reader)
    paint(easel.framebuffer, bitmap, palette)
    if (easel.count(bitmap.width * bitmap.height)) yield PAUSE
  }
}

function parseBitmap(reader: UpdateReader): Bitmap {
  const [left, top, right, bottom] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()]
  const [width, height, depth, flags] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()]
  const data = reader.bytes(reader.u16())
  if (!DEPTHS.has(depth)) throw new MalformedGraphics(`${WHAT}: expected a depth of RDP, got ${depth} bits`)
  if (MAX_BITMAP_PIXELS < width * height) {
    throw new MalformedGraphics(
      `${WHAT}: expected at most ${MAX_BITMAP_PIXELS} pixels, got ${width} × ${height}`,
    )
  }
  if (right < left || bottom < top) {
    throw new MalformedGraphics(
      `${WHAT}: expected a rectangle, got one from ${left}, ${top} to ${right}, ${bottom}`,
    )
  }
  const isCompressed = (flags & FLAG.compressed) !== 0
  const hasHeader = isCompressed && (flags & FLAG.withoutHeader) === 0
  return {
    ...{ left, top, right, bottom, width, height, depth, isCompressed },
    data: hasHeader ? withoutHeader(data) : data,
  }
}

/** TS_CD_HEADER (2.2.9.1.1.3.1.2.3): the second of its four numbers is the length of what follows. */
function withoutHeader(data: Uint8Array): Uint8Array {
  const reader = new UpdateReader(data, WHAT)
  reader.u16()
  const length = reader.u16()
  reader.bytes(COMPRESSION_HEADER - 4)
  return reader.bytes(length)
}

function paint(framebuffer: Framebuffer, bitmap: Bitmap, palette: Uint32Array): void {
  const { left, top, right, bottom } = bitmap
  const width = Math.min(right - left + 1, bitmap.width, framebuffer.width - left)
  const height = Math.min(bottom - top + 1, bitmap.height, framebuffer.height - top)
  const colours = coloursOf(bitmap, palette)
  if (width <= 0 || height <= 0) return
  for (let row = 0; row < height; row++) {
    // The lowest row comes first.
    const from = (bitmap.height - 1 - row) * bitmap.width
    framebuffer.pixels.set(colours.subarray(from, from + width), (top + row) * framebuffer.width + left)
  }
  framebuffer.touch({ x: left, y: top, width, height })
}

/** The lowest row first. */
function coloursOf(bitmap: Bitmap, palette: Uint32Array): Uint32Array {
  const { data, width, height, depth, isCompressed } = bitmap
  if (isCompressed && depth === 32) return decodePlanar(data, width, height)
  const pixels = isCompressed
    ? decodeInterleaved(data, width, height, depth as InterleavedDepth)
    : rawPixels(bitmap)
  toColours(pixels, depth, palette)
  return pixels
}

/** Each row fills whole words of four bytes. */
function rawPixels({ data, width, height, depth }: Bitmap): Uint32Array {
  const pixelLength = Math.ceil(depth / 8)
  const rowLength = (width * pixelLength + 3) & ~3
  if (data.length < rowLength * height) {
    throw new MalformedGraphics(`${WHAT}: expected ${rowLength * height} bytes, got ${data.length}`)
  }
  const pixels = new Uint32Array(width * height)
  // The fourth byte of 32 bits says nothing.
  const colourLength = Math.min(3, pixelLength)
  for (let row = 0, to = 0; row < height; row++) {
    for (let at = row * rowLength, column = 0; column < width; column++, at += pixelLength) {
      let value = 0
      for (let byte = 0; byte < colourLength; byte++) value |= data[at + byte]! << (8 * byte)
      pixels[to++] = value
    }
  }
  return pixels
}

/** Bitmap updates (MS-RDPBCGR 2.2.9.1.1.3.1.2): rectangles of pixels, raw or compressed. */
import { type Decoding, type Easel, PAUSE } from '../decoding.ts'
import { type Framebuffer, UNDRAWN } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { Rectangle } from '../rectangle.ts'
import { toColours } from './colours.ts'
import { decodeInterleaved, type InterleavedDepth } from './interleaved.ts'
import { decodePlanar } from './planar.ts'
import { UpdateReader } from './reader.ts'

/** Pixels of one bitmap: half of a 4K desktop, since servers send tiles or strips. */
export const MAX_BITMAP_PIXELS = 2 ** 22

const WHAT = 'bitmap'
const FLAG = { compressed: 0x0001, withoutHeader: 0x0400 } as const
const COMPRESSION_HEADER = 8
const DEPTHS: ReadonlySet<number> = new Set([8, 15, 16, 24, 32])

interface Bitmap {
  /** Destination, including the last column and row. */
  left: number
  top: number
  right: number
  bottom: number
  width: number
  height: number
  depth: number
  flags: number
  data: Uint8Array
}

/**
 * Paints `u16 type, u16 count`, then that many bitmaps. Parts outside of the framebuffer are left out;
 * undrawable pixels are grey. Throws MalformedGraphics after the last bitmap if any was undrawable, or if the
 * next one cannot be found.
 */
export function* paintBitmaps(data: Uint8Array, easel: Easel, palette: Uint32Array): Decoding {
  const reader = new UpdateReader(data, 'bitmap update')
  reader.u16()
  let flaw: MalformedGraphics | undefined
  for (let count = reader.u16(); count > 0; count--) {
    const bitmap = parseBitmap(reader)
    const place = placeOf(bitmap, easel.framebuffer)
    if (!place || bitmap.width * bitmap.height === 0) continue
    try {
      const { pixels, flaw: torn } = decode(bitmap, palette)
      flaw ??= torn
      paint(easel.framebuffer, bitmap, place, pixels)
    } catch (error) {
      if (!(error instanceof MalformedGraphics)) throw error
      flaw ??= error
      easel.framebuffer.fill(place, UNDRAWN)
    }
    easel.framebuffer.touch(place)
    const decoded = Math.min(bitmap.width * bitmap.height, MAX_BITMAP_PIXELS)
    if (easel.count(Math.max(place.width * place.height, decoded))) yield PAUSE
  }
  if (flaw) throw flaw
}

function parseBitmap(reader: UpdateReader): Bitmap {
  const [left, top, right, bottom] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()]
  const [width, height, depth, flags] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()]
  const data = reader.bytes(reader.u16())
  return { left, top, right, bottom, width, height, depth, flags, data }
}

/** Returns the painted area of the framebuffer, or undefined if it is empty. */
function placeOf({ left, top, right, bottom }: Bitmap, framebuffer: Framebuffer): Rectangle | undefined {
  const width = Math.min(right + 1, framebuffer.width) - left
  const height = Math.min(bottom + 1, framebuffer.height) - top
  return width > 0 && height > 0 ? { x: left, y: top, width, height } : undefined
}

/** Paints the bitmap: not all of the place, if the bitmap is smaller. */
function paint(
  framebuffer: Framebuffer,
  bitmap: Bitmap,
  { x, y, ...place }: Rectangle,
  colours: Uint32Array,
): void {
  const width = Math.min(place.width, bitmap.width)
  for (let row = 0; row < Math.min(place.height, bitmap.height); row++) {
    // The lowest row comes first.
    const from = (bitmap.height - 1 - row) * bitmap.width
    framebuffer.pixels.set(colours.subarray(from, from + width), (y + row) * framebuffer.width + x)
  }
}

/**
 * Returns the colours, the lowest row first. Throws MalformedGraphics; with `flaw` some of the colours are
 * grey.
 */
function decode(
  bitmap: Bitmap,
  palette: Uint32Array,
): { pixels: Uint32Array; flaw?: MalformedGraphics | undefined } {
  const { width, height, depth } = bitmap
  if (!DEPTHS.has(depth)) throw new MalformedGraphics(`${WHAT}: expected a depth of RDP, got ${depth} bits`)
  if (MAX_BITMAP_PIXELS < width * height) {
    throw new MalformedGraphics(
      `${WHAT}: expected at most ${MAX_BITMAP_PIXELS} pixels, got ${width} × ${height}`,
    )
  }
  if ((bitmap.flags & FLAG.compressed) === 0) {
    const pixels = rawPixels(bitmap)
    toColours(pixels, depth, palette)
    return { pixels }
  }
  const data = compressedData(bitmap)
  if (depth === 32) return { pixels: decodePlanar(data, width, height) }
  const { pixels, count, flaw } = decodeInterleaved(data, width, height, depth as InterleavedDepth)
  toColours(pixels, depth, palette)
  return { pixels: pixels.fill(UNDRAWN, count), flaw }
}

/**
 * Skips TS_CD_HEADER (2.2.9.1.1.3.1.2.3), if present: the second of its four numbers is the length of the
 * data.
 */
function compressedData({ data, flags }: Bitmap): Uint8Array {
  if ((flags & FLAG.withoutHeader) !== 0) return data
  const reader = new UpdateReader(data, WHAT)
  reader.u16()
  const length = reader.u16()
  reader.bytes(COMPRESSION_HEADER - 4)
  return reader.bytes(length)
}

/** Reads raw rows: each is padded to whole words of four bytes. */
function rawPixels({ data, width, height, depth }: Bitmap): Uint32Array {
  const pixelLength = Math.ceil(depth / 8)
  const rowLength = (width * pixelLength + 3) & ~3
  if (data.length < rowLength * height) {
    throw new MalformedGraphics(`${WHAT}: expected ${rowLength * height} bytes, got ${data.length}`)
  }
  const pixels = new Uint32Array(width * height)
  // The fourth byte of 32 bits has no meaning.
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

/**
 * Encodes parts of the bastion's own screens as bitmap updates (MS-RDPBCGR 2.2.9.1.1.3.1.2), of any depth
 * except 8 bits.
 */
import { Buffer } from 'node:buffer'
import type { Canvas } from '../../../src/drawing/canvas.ts'
import { PALETTE } from '../../desktop/screens/palette.ts'
import { UPDATE, type Update } from '../codec/updates.ts'
import { ByteWriter } from '../codec/writer.ts'
import { encodePlanes, planesOf } from './planes.ts'
import { encodeRuns } from './runs.ts'

/** Bits per pixel, the same as those of the desktop. */
export type Depth = 15 | 16 | 24 | 32

/** Falls back to 16 bits per pixel: clients that ask for 8 also accept 16. */
export function depthFor(wished: number): Depth {
  return wished === 15 || wished === 24 || wished === 32 ? wished : 16
}

/** Pixels per side of one bitmap: FreeRDP's servers use the same, and old clients accept no larger ones. */
const TILE = 64
/** Bytes of bitmaps in one update: below the 16 KiB that old clients accept. */
const UPDATE_BYTES = 15_000
const COMPRESSED = 0x0001
/** No header precedes the compressed bytes: GENERAL_FLAG.noBitmapCompressionHeader. */
const NO_HEADER = 0x0400

/** Returns the screens' colours as pixel values. */
const coloursOf = (pixelOf: (red: number, green: number, blue: number) => number): Uint32Array =>
  Uint32Array.from({ length: PALETTE.length / 3 }, (_, colour) => {
    const [red, green, blue] = PALETTE.subarray(3 * colour)
    return pixelOf(red!, green!, blue!)
  })

const COLOURS = {
  15: coloursOf((red, green, blue) => ((red >> 3) << 10) | ((green >> 3) << 5) | (blue >> 3)),
  16: coloursOf((red, green, blue) => ((red >> 3) << 11) | ((green >> 2) << 5) | (blue >> 3)),
  24: coloursOf((red, green, blue) => (red << 16) | (green << 8) | blue),
} as const
const PLANES = planesOf(PALETTE)

/** Encodes the canvas with its upper left corner at this position. The canvas must lie within the desktop. */
export function encodeCanvas(left: number, top: number, canvas: Canvas, depth: Depth): Update[] {
  const updates: Update[] = []
  let bitmaps: Buffer[] = []
  let bytes = 0
  const finish = (): void => {
    if (bitmaps.length > 0) updates.push(joinBitmaps(bitmaps))
    bitmaps = []
    bytes = 0
  }
  for (let y = 0; y < canvas.height; y += TILE) {
    for (let x = 0; x < canvas.width; x += TILE) {
      const bitmap = encodeTile(left, top, tileOf(canvas, x, y), depth)
      if (UPDATE_BYTES < bytes + bitmap.length) finish()
      bitmaps.push(bitmap)
      bytes += bitmap.length
    }
  }
  finish()
  return updates
}

function joinBitmaps(bitmaps: readonly Buffer[]): Update {
  const head = new ByteWriter(4).uint16(UPDATE.bitmap).uint16(bitmaps.length).finish()
  return { code: UPDATE.bitmap, data: Buffer.concat([head, ...bitmaps]) }
}

interface Tile {
  /** Position within the canvas. */
  x: number
  y: number
  width: number
  height: number
  /** Pixels per encoded row, the lowest row first; pixels beyond the width are not shown. */
  padded: number
  pixels: Uint8Array
}

function tileOf(canvas: Canvas, x: number, y: number): Tile {
  const width = Math.min(TILE, canvas.width - x)
  const height = Math.min(TILE, canvas.height - y)
  // Rows of compressed bitmaps have a multiple of four pixels.
  const padded = (width + 3) & ~3
  const pixels = new Uint8Array(padded * height)
  for (let row = 0; row < height; row++) {
    const from = (y + height - 1 - row) * canvas.width + x
    pixels.set(canvas.pixels.subarray(from, from + width), row * padded)
    pixels.fill(canvas.pixels[from + width - 1]!, row * padded + width, (row + 1) * padded)
  }
  return { x, y, width, height, padded, pixels }
}

function encodePixels({ pixels, padded }: Tile, depth: Depth): Buffer {
  if (depth === 32) return encodePlanes(pixels, padded, PLANES)
  return encodeRuns(pixels, COLOURS[depth], depth === 24 ? 3 : 2)
}

function encodeTile(left: number, top: number, tile: Tile, depth: Depth): Buffer {
  const { x, y, width, height, padded } = tile
  const data = encodePixels(tile, depth)
  const writer = new ByteWriter(18 + data.length).uint16(left + x).uint16(top + y)
  writer.uint16(left + x + width - 1).uint16(top + y + height - 1)
  writer
    .uint16(padded)
    .uint16(height)
    .uint16(depth)
    .uint16(COMPRESSED | NO_HEADER)
  return writer.uint16(data.length).bytes(data).finish()
}

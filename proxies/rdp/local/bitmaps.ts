/** Parts of the bastion's own screens as bitmap updates of 16 bits a pixel (MS-RDPBCGR 2.2.9.1.1.3.1.2). */
import { Buffer } from 'node:buffer'
import type { Canvas } from '../../../src/drawing/canvas.ts'
import { PALETTE } from '../../desktop/palette.ts'
import { UPDATE, type Update } from '../codec/updates.ts'
import { ByteWriter } from '../codec/writer.ts'
import { encodeRuns } from './runs.ts'

/** Bits a pixel of these bitmaps, and so of the desktop that they are drawn on. */
export const OWN_DEPTH = 16

/** A side of what is sent as one bitmap: FreeRDP's servers cut alike, and old clients take no larger ones. */
const TILE = 64
/** Bytes of bitmaps in one update: below the 16 KiB that old clients take. */
const UPDATE_BYTES = 15_000
const COMPRESSED = 0x0001
/** Nothing stands before the compressed bytes: GENERAL_FLAG.noBitmapCompressionHeader. */
const NO_HEADER = 0x0400

/** Each colour of the screens with five, six and five bits. */
const COLOURS = Uint16Array.from({ length: PALETTE.length / 3 }, (_, colour) => {
  const [red, green, blue] = PALETTE.subarray(3 * colour)
  return ((red! >> 3) << 11) | ((green! >> 2) << 5) | (blue! >> 3)
})

/** The canvas with its upper left corner there, which with all of the canvas lies within the desktop. */
export function encodeCanvas(left: number, top: number, canvas: Canvas): Update[] {
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
      const bitmap = encodeTile(left, top, canvas, x, y)
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

function encodeTile(left: number, top: number, canvas: Canvas, x: number, y: number): Buffer {
  const width = Math.min(TILE, canvas.width - x)
  const height = Math.min(TILE, canvas.height - y)
  // Rows of compressed bitmaps have a multiple of four pixels; what is too much of them is not shown.
  const padded = (width + 3) & ~3
  const pixels = new Uint16Array(padded * height)
  for (let row = 0; row < height; row++) {
    const from = (y + height - 1 - row) * canvas.width + x
    for (let column = 0; column < padded; column++) {
      pixels[row * padded + column] = COLOURS[canvas.pixels[from + Math.min(column, width - 1)]!]!
    }
  }
  const data = encodeRuns(pixels)
  const writer = new ByteWriter(18 + data.length).uint16(left + x).uint16(top + y)
  writer.uint16(left + x + width - 1).uint16(top + y + height - 1)
  writer
    .uint16(padded)
    .uint16(height)
    .uint16(OWN_DEPTH)
    .uint16(COMPRESSED | NO_HEADER)
  return writer.uint16(data.length).bytes(data).finish()
}

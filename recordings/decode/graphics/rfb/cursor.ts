/** The pointer's picture in RFB: Cursor, X Cursor (RFC 6143 7.8.1, 7.8.2), and Cursor With Alpha. */
import type { Cursor } from '../cursor.ts'
import { MORE, type Wait } from '../decoding.ts'
import { rgb } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { Rectangle } from '../rectangle.ts'
import type { Source } from '../source.ts'
import type { PixelReader } from './pixel-format.ts'

export const MAX_CURSOR_SIDE = 512
const RAW = 0
const TRANSPARENT = 0

/** `undefined` if the pointer has no picture. */
type CursorDecoding = Generator<Wait, Cursor | undefined>

/** Reads the pixels, then a mask with a bit for each visible pixel; each row of the mask begins at a byte. */
export function* decodeCursor(source: Source, rectangle: Rectangle, reader: PixelReader): CursorDecoding {
  const { width, height } = checked(rectangle)
  const length = width * height * reader.length
  const maskRow = Math.ceil(width / 8)
  while (!source.has(length + maskRow * height)) yield MORE
  const pixels = new Uint32Array(width * height)
  reader.read(source.take(length), 0, pixels, 0, pixels.length)
  const mask = source.take(maskRow * height)
  return cursorOf(rectangle, (column, row) =>
    isSet(mask, maskRow, column, row) ? pixels[row * width + column]! : TRANSPARENT,
  )
}

/**
 * Reads two colours of three bytes, a bit for each pixel that selects one, and a mask as above. All are
 * absent if the rectangle is empty.
 */
export function* decodeXCursor(source: Source, rectangle: Rectangle): CursorDecoding {
  const { width, height } = checked(rectangle)
  if (width === 0 || height === 0) return undefined
  const maskRow = Math.ceil(width / 8)
  while (!source.has(6 + 2 * maskRow * height)) yield MORE
  const foreground = rgb(source.u8(), source.u8(), source.u8())
  const background = rgb(source.u8(), source.u8(), source.u8())
  const bits = source.take(maskRow * height)
  const mask = source.take(maskRow * height)
  return cursorOf(rectangle, (column, row) => {
    if (!isSet(mask, maskRow, column, row)) return TRANSPARENT
    return isSet(bits, maskRow, column, row) ? foreground : background
  })
}

/** Reads `S32 encoding`, then red, green, blue and alpha of each pixel, premultiplied by alpha. */
export function* decodeAlphaCursor(source: Source, rectangle: Rectangle): CursorDecoding {
  const { width, height } = checked(rectangle)
  while (!source.has(4)) yield MORE
  const encoding = source.i32()
  if (encoding !== RAW) throw new MalformedGraphics(`expected a raw cursor, got one in encoding ${encoding}`)
  while (!source.has(4 * width * height)) yield MORE
  const bytes = source.take(4 * width * height)
  return cursorOf(rectangle, (column, row) => {
    const at = 4 * (row * width + column)
    return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
  })
}

function checked({ width, height }: Rectangle): { width: number; height: number } {
  if (Math.max(width, height) <= MAX_CURSOR_SIDE) return { width, height }
  throw new MalformedGraphics(
    `expected a cursor of at most ${MAX_CURSOR_SIDE} pixels a side, got ${width} × ${height}`,
  )
}

function cursorOf(
  { x, y, width, height }: Rectangle,
  colourAt: (column: number, row: number) => number,
): Cursor | undefined {
  if (width === 0 || height === 0) return undefined
  const pixels = new Uint32Array(width * height)
  for (let row = 0; row < height; row++) {
    for (let column = 0; column < width; column++) pixels[row * width + column] = colourAt(column, row)
  }
  return { width, height, hotX: x, hotY: y, pixels }
}

function isSet(bits: Uint8Array, rowLength: number, column: number, row: number): boolean {
  return (bits[row * rowLength + (column >> 3)]! & (0x80 >> (column & 7))) !== 0
}

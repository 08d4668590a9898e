/**
 * Hextile (RFC 6143 section 7.7.4) of pictures with few colours: tiles of one colour cost a byte, text a few
 * bytes per stroke, and rectangles do not depend on each other.
 */
import { Buffer } from 'node:buffer'
import type { Canvas } from '../../../src/drawing/canvas.ts'
import { bytesPerPixel, type PixelFormat } from '../codec/pixel-format.ts'

const TILE = 16
const RAW = 1
const BACKGROUND = 2
const FOREGROUND = 4
const SUBRECTANGLES = 8
const COLOURED = 16
const MAX_SUBRECTANGLES = 255

const NOTHING = Uint8Array.of(0)
const BACKGROUND_ONLY = Uint8Array.of(BACKGROUND)

/** A box of one colour inside a tile. */
interface Box {
  colour: number
  x: number
  y: number
  width: number
  height: number
}

/** `pixels`: the bytes of each of the canvas's colours in the viewer's format. */
export function encodeHextile(canvas: Canvas, pixels: readonly Uint8Array[], format: PixelFormat): Buffer {
  const parts: Uint8Array[] = []
  const size = bytesPerPixel(format)
  let background: number | undefined
  for (let top = 0; top < canvas.height; top += TILE) {
    for (let left = 0; left < canvas.width; left += TILE) {
      const width = Math.min(TILE, canvas.width - left)
      const height = Math.min(TILE, canvas.height - top)
      const only = onlyColour(canvas, left, top, width, height)
      if (only !== undefined) {
        parts.push(only === background ? NOTHING : Buffer.concat([BACKGROUND_ONLY, pixels[only]!]))
        background = only
        continue
      }
      const at = (x: number, y: number): number => canvas.pixels[(top + y) * canvas.width + left + x]!
      const colours = countsOf(width, height, at)
      const common = [...colours].reduce((most, one) => (one[1] > most[1] ? one : most))[0]
      const tile = encodeTile(boxesOf(width, height, common, at), common, background, colours.size, pixels)
      if (tile.length <= width * height * size) {
        parts.push(tile)
        background = common
        continue
      }
      parts.push(Uint8Array.of(RAW))
      for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) parts.push(pixels[at(x, y)]!)
      // A raw tile resets the background.
      background = undefined
    }
  }
  return Buffer.concat(parts)
}

/** Returns the only colour of a tile, or undefined if it has several. */
function onlyColour(
  { pixels, width: stride }: Canvas,
  left: number,
  top: number,
  width: number,
  height: number,
): number | undefined {
  const colour = pixels[top * stride + left]!
  for (let y = top; y < top + height; y++) {
    const row = y * stride + left
    for (let at = row; at < row + width; at++) if (pixels[at] !== colour) return undefined
  }
  return colour
}

function countsOf(width: number, height: number, at: (x: number, y: number) => number): Map<number, number> {
  const counts = new Map<number, number>()
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) counts.set(at(x, y), (counts.get(at(x, y)) ?? 0) + 1)
  }
  return counts
}

/** Returns boxes for everything but the background: runs of a row, extended down over equal rows. */
function boxesOf(
  width: number,
  height: number,
  background: number,
  at: (x: number, y: number) => number,
): Box[] {
  const boxes: Box[] = []
  const done = new Uint8Array(TILE * TILE)
  const isFree = (x: number, y: number, colour: number): boolean =>
    at(x, y) === colour && done[y * TILE + x] === 0
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = at(x, y)
      if (colour === background || done[y * TILE + x] !== 0) continue
      let end = x + 1
      while (end < width && isFree(end, y, colour)) end++
      let bottom = y + 1
      while (bottom < height && isRun(x, end, bottom, colour, isFree)) bottom++
      for (let row = y; row < bottom; row++) done.fill(1, row * TILE + x, row * TILE + end)
      boxes.push({ colour, x, y, width: end - x, height: bottom - y })
    }
  }
  return boxes
}

function isRun(
  from: number,
  to: number,
  y: number,
  colour: number,
  isFree: (x: number, y: number, colour: number) => boolean,
): boolean {
  for (let x = from; x < to; x++) if (!isFree(x, y, colour)) return false
  return true
}

/** Returns a tile that is longer than any raw one if it has too many boxes. */
function encodeTile(
  boxes: readonly Box[],
  colour: number,
  background: number | undefined,
  colours: number,
  pixels: readonly Uint8Array[],
): Buffer {
  const isColoured = colours > 2
  const flags =
    (colour === background ? 0 : BACKGROUND) | SUBRECTANGLES | (isColoured ? COLOURED : FOREGROUND)
  const parts: Uint8Array[] = [Uint8Array.of(flags)]
  if (flags & BACKGROUND) parts.push(pixels[colour]!)
  if (MAX_SUBRECTANGLES < boxes.length) return Buffer.alloc(TILE * TILE * 4 + 1)
  if (!isColoured) parts.push(pixels[boxes[0]!.colour]!)
  parts.push(Uint8Array.of(boxes.length))
  for (const box of boxes) {
    if (isColoured) parts.push(pixels[box.colour]!)
    parts.push(Uint8Array.of((box.x << 4) | box.y, ((box.width - 1) << 4) | (box.height - 1)))
  }
  return Buffer.concat(parts)
}

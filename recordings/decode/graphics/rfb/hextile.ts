/** Hextile (RFC 6143 7.7.4): tiles of 16 × 16, each raw, or a background with subrectangles. */
import { type Decoding, type Easel, MORE, PAUSE } from '../decoding.ts'
import { BLACK } from '../framebuffer.ts'
import { UndrawableGraphics } from '../malformed.ts'
import type { Rectangle } from '../rectangle.ts'
import type { Source } from '../source.ts'
import type { PixelReader } from './pixel-format.ts'
import { decodeRaw } from './raw.ts'
import { tilesOf } from './tiles.ts'

const TILE = 16
const RAW = 1
const BACKGROUND = 2
const FOREGROUND = 4
const SUBRECTANGLES = 8
const COLOURED = 16

export function* decodeHextile(
  source: Source,
  rectangle: Rectangle,
  reader: PixelReader,
  easel: Easel,
): Decoding {
  const { framebuffer } = easel
  let background = BLACK
  let foreground = BLACK
  let isBeyond = false
  for (const tile of tilesOf(rectangle, TILE)) {
    while (!source.has(1)) yield MORE
    const kind = source.u8()
    if ((kind & RAW) !== 0) {
      yield* decodeRaw(source, tile, reader, easel)
      continue
    }
    const head =
      ((kind & BACKGROUND) !== 0 ? reader.length : 0) +
      ((kind & FOREGROUND) !== 0 ? reader.length : 0) +
      ((kind & SUBRECTANGLES) !== 0 ? 1 : 0)
    while (!source.has(head)) yield MORE
    if ((kind & BACKGROUND) !== 0) background = reader.one(source.take(reader.length), 0)
    if ((kind & FOREGROUND) !== 0) foreground = reader.one(source.take(reader.length), 0)
    framebuffer.fill(tile, background)
    if (easel.count(TILE * TILE)) yield PAUSE
    if ((kind & SUBRECTANGLES) === 0) continue
    const isColoured = (kind & COLOURED) !== 0
    const length = 2 + (isColoured ? reader.length : 0)
    for (let count = source.u8(); count > 0; count--) {
      while (!source.has(length)) yield MORE
      const colour = isColoured ? reader.one(source.take(reader.length), 0) : foreground
      const inner = subrectangle(tile, source.u8(), source.u8())
      if (inner) framebuffer.fill(inner, colour)
      else isBeyond = true
    }
    if (easel.count(TILE * TILE)) yield PAUSE
  }
  if (isBeyond) {
    throw new UndrawableGraphics('expected a Hextile subrectangle inside its tile, got one beyond')
  }
}

/**
 * Parses `place` (x and y, four bits each) and `extent` (width and height less one, likewise). Returns
 * undefined if the subrectangle is not inside the tile.
 */
function subrectangle(tile: Rectangle, place: number, extent: number): Rectangle | undefined {
  const x = place >> 4
  const y = place & 15
  const width = (extent >> 4) + 1
  const height = (extent & 15) + 1
  if (x + width > tile.width || y + height > tile.height) return undefined
  return { x: tile.x + x, y: tile.y + y, width, height }
}

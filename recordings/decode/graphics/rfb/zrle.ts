/** ZRLE (RFC 6143 7.7.6): tiles of 64 × 64 in one zlib stream that all such rectangles share. */
import { type Decoding, type Easel, MORE, PAUSE } from '../decoding.ts'
import type { Framebuffer } from '../framebuffer.ts'
import { InflatedSource, type InflateStream } from '../inflate.ts'
import { MalformedGraphics } from '../malformed.ts'
import type { Rectangle } from '../rectangle.ts'
import type { PieceSource, Source } from '../source.ts'
import type { PixelReader } from './pixel-format.ts'
import { decodeRaw } from './raw.ts'
import { tilesOf } from './tiles.ts'

const TILE = 64
const RAW = 0
const MAX_PACKED = 16
const PLAIN_RLE = 128
const PALETTE_RLE = 130
const RUN = 0x80
/** Byte of a run's length that another byte follows. */
const LONGER = 255

export function* decodeZrle(
  source: PieceSource,
  rectangle: Rectangle,
  reader: PixelReader,
  easel: Easel,
  stream: InflateStream,
): Decoding {
  while (!source.has(4)) yield MORE
  const inflated = new InflatedSource(stream, source, source.u32())
  yield* inflated.drawn(decodeTiles(inflated, rectangle, reader, easel), easel)
}

function* decodeTiles(inflated: Source, rectangle: Rectangle, reader: PixelReader, easel: Easel): Decoding {
  for (const tile of tilesOf(rectangle, TILE)) {
    while (!inflated.has(1)) yield MORE
    const kind = inflated.u8()
    if (kind === RAW) yield* decodeRaw(inflated, tile, reader, easel)
    else if (kind === PLAIN_RLE) yield* decodeRuns(inflated, tile, reader, easel.framebuffer)
    else yield* decodePalette(inflated, tile, reader, easel.framebuffer, kind)
    if (easel.count(tile.width * tile.height)) yield PAUSE
  }
}

/** Reads one colour, a packed palette, or runs of palette indexes. */
function* decodePalette(
  source: Source,
  tile: Rectangle,
  reader: PixelReader,
  framebuffer: Framebuffer,
  kind: number,
): Decoding {
  const isRuns = kind >= PALETTE_RLE
  if (!isRuns && kind > MAX_PACKED) {
    throw new MalformedGraphics(`expected a ZRLE tile of a kind that there is, got ${kind}`)
  }
  const count = isRuns ? kind - RUN : kind
  while (!source.has(count * reader.length)) yield MORE
  const palette = new Uint32Array(count)
  reader.read(source.take(count * reader.length), 0, palette, 0, count)
  if (count === 1) framebuffer.fill(tile, palette[0]!)
  else if (isRuns) yield* decodePaletteRuns(source, tile, palette, framebuffer)
  else yield* decodePacked(source, tile, palette, framebuffer)
}

function* decodePacked(
  source: Source,
  { x, y, width, height }: Rectangle,
  palette: Uint32Array,
  framebuffer: Framebuffer,
): Decoding {
  const bits = palette.length === 2 ? 1 : palette.length <= 4 ? 2 : 4
  const mask = (1 << bits) - 1
  const length = Math.ceil((width * bits) / 8)
  for (let row = y; row < y + height; row++) {
    while (!source.has(length)) yield MORE
    const bytes = source.take(length)
    const at = row * framebuffer.width + x
    for (let column = 0; column < width; column++) {
      const bit = column * bits
      const place = (bytes[bit >> 3]! >> (8 - bits - (bit & 7))) & mask
      framebuffer.pixels[at + column] = colourAt(palette, place)
    }
  }
}

function* decodeRuns(
  source: Source,
  tile: Rectangle,
  reader: PixelReader,
  framebuffer: Framebuffer,
): Decoding {
  const run = new Run(tile, framebuffer)
  while (run.rest > 0) {
    while (!source.has(reader.length)) yield MORE
    run.colour = reader.one(source.take(reader.length), 0)
    yield* paintRun(source, run)
  }
}

function* decodePaletteRuns(
  source: Source,
  tile: Rectangle,
  palette: Uint32Array,
  framebuffer: Framebuffer,
): Decoding {
  const run = new Run(tile, framebuffer)
  while (run.rest > 0) {
    while (!source.has(1)) yield MORE
    const place = source.u8()
    run.colour = colourAt(palette, place & ~RUN)
    if ((place & RUN) === 0) run.paint(1)
    else yield* paintRun(source, run)
  }
}

/** Paints a run: its length is one more than the sum of its bytes, of which all but the last are 255. */
function* paintRun(source: Source, run: Run): Decoding {
  for (let length = 1; ; ) {
    while (!source.has(1)) yield MORE
    const byte = source.u8()
    length += byte
    if (byte === LONGER && length <= run.rest) continue
    run.paint(length)
    return
  }
}

/** Paints the pixels of a tile in order. */
class Run {
  colour = 0
  readonly #tile: Rectangle
  readonly #framebuffer: Framebuffer
  #done = 0

  constructor(tile: Rectangle, framebuffer: Framebuffer) {
    this.#tile = tile
    this.#framebuffer = framebuffer
  }

  get rest(): number {
    return this.#tile.width * this.#tile.height - this.#done
  }

  paint(length: number): void {
    if (length > this.rest) {
      throw new MalformedGraphics(
        `expected a run of at most ${this.rest} pixels in a ZRLE tile, got ${length}`,
      )
    }
    const { x, y, width } = this.#tile
    const { pixels, width: stride } = this.#framebuffer
    for (let rest = length; rest > 0; ) {
      const column = this.#done % width
      const count = Math.min(rest, width - column)
      const from = (y + Math.floor(this.#done / width)) * stride + x + column
      pixels.fill(this.colour, from, from + count)
      this.#done += count
      rest -= count
    }
  }
}

function colourAt(palette: Uint32Array, place: number): number {
  const colour = palette[place]
  if (colour !== undefined) return colour
  throw new MalformedGraphics(`expected a place in a palette of ${palette.length} colours, got ${place}`)
}

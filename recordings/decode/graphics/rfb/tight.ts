/**
 * Tight (the community's RFB specification, 7.7.7): one colour, a JPEG, or pixels through a filter in one of
 * four zlib streams.
 */
import { type Decoding, type Easel, MORE, PAUSE, type Wait } from '../decoding.ts'
import { InflatedSource, InflateStream } from '../inflate.ts'
import { decodeJpeg } from '../jpeg.ts'
import { MalformedGraphics, UndrawableGraphics } from '../malformed.ts'
import type { Rectangle, Size } from '../rectangle.ts'
import type { PieceSource, Source } from '../source.ts'
import { GradientReader } from './gradient.ts'
import type { PixelReader, PixelReaders } from './pixel-format.ts'
import { decodeRaw } from './raw.ts'

const STREAMS = 4
const FILL = 8
const JPEG = 9
/** Bit of the first byte's upper four, below FILL: a filter's number follows. */
const FILTERED = 4
const COPY = 0
const PALETTE = 1
const GRADIENT = 2
/** Length of pixel data, in bytes, from which on it is deflated. */
const DEFLATED_FROM = 12

export class TightDecoder {
  readonly streams: readonly InflateStream[]

  constructor() {
    this.streams = Array.from({ length: STREAMS }, () => new InflateStream())
  }

  *decode(source: PieceSource, rectangle: Rectangle, readers: PixelReaders, easel: Easel): Decoding {
    while (!source.has(1)) yield MORE
    const control = source.u8()
    for (const [at, stream] of this.streams.entries()) if ((control & (1 << at)) !== 0) stream.reset()
    const kind = control >> 4
    if (kind === FILL) yield* fill(source, rectangle, readers.tight, easel)
    else if (kind === JPEG) yield* jpeg(source, rectangle, easel)
    else if (kind < FILL) {
      const stream = this.streams[kind % STREAMS]!
      yield* this.#filtered(source, rectangle, readers, easel, stream, (kind & FILTERED) !== 0)
    } else throw new MalformedGraphics(`expected a kind of Tight that there is, got ${kind}`)
  }

  *#filtered(
    source: PieceSource,
    rectangle: Rectangle,
    readers: PixelReaders,
    easel: Easel,
    stream: InflateStream,
    hasFilter: boolean,
  ): Decoding {
    let filter = COPY
    if (hasFilter) {
      while (!source.has(1)) yield MORE
      filter = source.u8()
    }
    if (filter === COPY) {
      const data = yield* dataOf(source, rectangle.width * readers.tight.length * rectangle.height, stream)
      yield* drawn(data, decodeRaw(data, rectangle, readers.tight, easel), easel)
    } else if (filter === PALETTE) yield* paletted(source, rectangle, readers.tight, easel, stream)
    else if (filter === GRADIENT) {
      const data = yield* dataOf(source, rectangle.width * readers.tight.length * rectangle.height, stream)
      const reader = new GradientReader(readers, rectangle.width)
      yield* drawn(data, decodeRaw(data, rectangle, reader, easel), easel)
    } else throw new MalformedGraphics(`expected a filter of Tight that there is, got ${filter}`)
  }
}

function* fill(source: Source, rectangle: Rectangle, reader: PixelReader, easel: Easel): Decoding {
  while (!source.has(reader.length)) yield MORE
  easel.framebuffer.fill(rectangle, reader.one(source.take(reader.length), 0))
  if (easel.count(rectangle.width * rectangle.height)) yield PAUSE
}

function* jpeg(source: Source, { x, y, width, height }: Rectangle, easel: Easel): Decoding {
  const length = yield* compactLength(source)
  while (!source.has(length)) yield MORE
  const picture = pictureOf(source.take(length), { width, height })
  const { framebuffer } = easel
  for (let row = 0; row < height; row++) {
    framebuffer.pixels.set(
      picture.subarray(row * width, (row + 1) * width),
      (y + row) * framebuffer.width + x,
    )
  }
  if (easel.count(width * height)) yield PAUSE
}

function pictureOf(data: Uint8Array, size: Size): Uint32Array {
  try {
    return decodeJpeg(data, size)
  } catch (error) {
    throw error instanceof MalformedGraphics ? new UndrawableGraphics(error.message) : error
  }
}

/**
 * Reads `U8 count less one`, the colours, then for each pixel its index in the palette: a bit for two
 * colours, a byte for more.
 */
function* paletted(
  source: PieceSource,
  rectangle: Rectangle,
  reader: PixelReader,
  easel: Easel,
  stream: InflateStream,
): Decoding {
  while (!source.has(1)) yield MORE
  const count = source.u8() + 1
  while (!source.has(count * reader.length)) yield MORE
  const palette = new Uint32Array(count)
  reader.read(source.take(count * reader.length), 0, palette, 0, count)
  const length = count <= 2 ? Math.ceil(rectangle.width / 8) : rectangle.width
  const data = yield* dataOf(source, length * rectangle.height, stream)
  yield* drawn(data, places(data, rectangle, palette, length, easel), easel)
}

/** Reads rows of palette indexes, each of `length` bytes. */
function* places(
  data: Source,
  { x, y, width, height }: Rectangle,
  palette: Uint32Array,
  length: number,
  easel: Easel,
): Decoding {
  const { framebuffer } = easel
  const isBits = palette.length <= 2
  let beyond: number | undefined
  for (let row = y; row < y + height; row++) {
    while (!data.has(length)) yield MORE
    const bytes = data.take(length)
    const at = row * framebuffer.width + x
    for (let column = 0; column < width; column++) {
      const place = isBits ? (bytes[column >> 3]! >> (7 - (column & 7))) & 1 : bytes[column]!
      const colour = palette[place]
      if (colour === undefined) beyond = place
      else framebuffer.pixels[at + column] = colour
    }
    if (easel.count(width)) yield PAUSE
  }
  if (beyond !== undefined) {
    throw new UndrawableGraphics(`expected a place in a palette of ${palette.length} colours, got ${beyond}`)
  }
}

/** Reads few bytes raw, more of them deflated. */
function* dataOf(source: PieceSource, length: number, stream: InflateStream): Generator<Wait, Source> {
  if (length < DEFLATED_FROM) return source
  return new InflatedSource(stream, source, yield* compactLength(source))
}

function drawn(data: Source, draw: Decoding, easel: Easel): Decoding {
  return data instanceof InflatedSource ? data.drawn(draw, easel) : draw
}

/**
 * Reads one to three bytes: seven bits each, and eight in the third; the high bit is set if another byte
 * follows.
 */
function* compactLength(source: Source): Generator<Wait, number> {
  let length = 0
  for (let shift = 0; ; shift += 7) {
    while (!source.has(1)) yield MORE
    const byte = source.u8()
    if (shift === 14) return length | (byte << shift)
    length |= (byte & 0x7f) << shift
    if (byte < 0x80) return length
  }
}

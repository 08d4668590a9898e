/** Raw, CopyRect and RRE (RFC 6143 7.7.1 to 7.7.3), and Zlib, which is Raw inflated. */
import { type Decoding, type Easel, MORE, PAUSE } from '../decoding.ts'
import { InflatedSource, type InflateStream } from '../inflate.ts'
import { UndrawableGraphics } from '../malformed.ts'
import type { Rectangle } from '../rectangle.ts'
import type { PieceSource, Source } from '../source.ts'
import type { PixelReader } from './pixel-format.ts'

/** Reads rows of pixels; the rectangle lies inside. */
export function* decodeRaw(
  source: Source,
  { x, y, width, height }: Rectangle,
  reader: PixelReader,
  easel: Easel,
): Decoding {
  const { framebuffer } = easel
  const length = width * reader.length
  for (let row = y; row < y + height; row++) {
    while (!source.has(length)) yield MORE
    reader.read(source.take(length), 0, framebuffer.pixels, row * framebuffer.width + x, width)
    if (easel.count(width)) yield PAUSE
  }
}

/** Encoding 6: `U32 length`, then rows of pixels in one zlib stream that all such rectangles share. */
export function* decodeZlib(
  source: PieceSource,
  rectangle: Rectangle,
  reader: PixelReader,
  easel: Easel,
  stream: InflateStream,
): Decoding {
  while (!source.has(4)) yield MORE
  const inflated = new InflatedSource(stream, source, source.u32())
  yield* inflated.drawn(decodeRaw(inflated, rectangle, reader, easel), easel)
}

/** Copies from `U16 x, U16 y`. */
export function* decodeCopyRect(source: Source, rectangle: Rectangle, easel: Easel): Decoding {
  while (!source.has(4)) yield MORE
  const x = source.u16()
  const y = source.u16()
  const { width, height } = rectangle
  easel.framebuffer.requireInside({ x, y, width, height })
  easel.framebuffer.copy(x, y, rectangle)
  if (easel.count(width * height)) yield PAUSE
}

/**
 * Paints `U32 count, PIXEL background`, then for each `PIXEL, U16 x, y, width, height` inside the rectangle.
 */
export function* decodeRre(
  source: Source,
  rectangle: Rectangle,
  reader: PixelReader,
  easel: Easel,
): Decoding {
  const { framebuffer } = easel
  while (!source.has(4 + reader.length)) yield MORE
  const count = source.u32()
  framebuffer.fill(rectangle, reader.one(source.take(reader.length), 0))
  if (easel.count(rectangle.width * rectangle.height)) yield PAUSE
  let isBeyond = false
  for (let at = 0; at < count; at++) {
    while (!source.has(reader.length + 8)) yield MORE
    const colour = reader.one(source.take(reader.length), 0)
    const inner = { x: source.u16(), y: source.u16(), width: source.u16(), height: source.u16() }
    if (inner.x + inner.width > rectangle.width || inner.y + inner.height > rectangle.height) {
      isBeyond = true
      continue
    }
    framebuffer.fill({ ...inner, x: rectangle.x + inner.x, y: rectangle.y + inner.y }, colour)
    if (easel.count(inner.width * inner.height + 1)) yield PAUSE
  }
  if (isBeyond) {
    throw new UndrawableGraphics('expected an RRE subrectangle inside its rectangle, got one beyond')
  }
}

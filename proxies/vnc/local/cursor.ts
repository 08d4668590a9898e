/** An arrow, for viewers that let the server draw their pointer (RFC 6143 section 7.8.1). */
import { Buffer } from 'node:buffer'
import { ARROW } from '../../../src/drawing/arrow.ts'
import { ENCODING } from '../codec/encodings.ts'
import { bytesPerPixel, type PixelFormat } from '../codec/pixel-format.ts'
import { encodeRectangleHeader } from '../codec/server-encoder.ts'

/** Encodes a rectangle. */
export function encodeArrow(dark: Uint8Array, light: Uint8Array, format: PixelFormat): Buffer {
  const width = ARROW[0]!.length
  const height = ARROW.length
  const size = bytesPerPixel(format)
  const stride = Math.ceil(width / 8)
  const pixels = Buffer.alloc(width * height * size)
  const mask = Buffer.alloc(stride * height)
  for (const [y, row] of ARROW.entries()) {
    for (const [x, mark] of [...row].entries()) {
      if (mark === ' ') continue
      pixels.set(mark === '#' ? dark : light, (y * width + x) * size)
      mask[y * stride + (x >> 3)]! |= 0x80 >> (x & 7)
    }
  }
  return Buffer.concat([encodeRectangleHeader({ x: 0, y: 0, width, height }, ENCODING.CURSOR), pixels, mask])
}

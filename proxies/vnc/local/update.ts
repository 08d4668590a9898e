/** Encodes parts of a screen as rectangles in a viewer's pixel format. */
import { Buffer } from 'node:buffer'
import type { Canvas } from '../../../src/drawing/canvas.ts'
import { COLOUR, PALETTE } from '../../desktop/screens/palette.ts'
import { ENCODING } from '../codec/encodings.ts'
import { bytesPerPixel, type PixelFormat } from '../codec/pixel-format.ts'
import { pixelOf, putPixel } from '../codec/pixels.ts'
import { encodeColourMap, encodeRectangleHeader } from '../codec/server-encoder.ts'
import { encodeArrow } from './cursor.ts'
import { encodeHextile } from './hextile.ts'

/** Encodes in one pixel format. */
export class PixelEncoder {
  readonly format: PixelFormat
  /** The bytes of each colour of the screens. */
  readonly #pixels: readonly Uint8Array[]

  constructor(format: PixelFormat) {
    this.format = format
    this.#pixels = Array.from({ length: PALETTE.length / 3 }, (_, colour) => {
      const [red, green, blue] = PALETTE.subarray(3 * colour)
      const pixel = format.isTrueColour ? pixelOf(format, red!, green!, blue!) : colour
      const bytes = new Uint8Array(bytesPerPixel(format))
      putPixel(bytes, 0, pixel, format)
      return bytes
    })
  }

  /** Encodes the message for a viewer whose pixels are indices into a colour map. */
  colourMap(): Buffer {
    const parts = Array.from({ length: PALETTE.length / 3 }, (_, colour) => {
      const [red, green, blue] = PALETTE.subarray(3 * colour)
      return { red: 257 * red!, green: 257 * green!, blue: 257 * blue! }
    })
    return encodeColourMap(0, parts)
  }

  /** Encodes a rectangle with its upper left corner there: Hextile if the viewer supports it, else Raw. */
  rectangle(left: number, top: number, canvas: Canvas, knowsHextile: boolean): Buffer {
    const area = { x: left, y: top, width: canvas.width, height: canvas.height }
    return Buffer.concat([
      encodeRectangleHeader(area, knowsHextile ? ENCODING.HEXTILE : ENCODING.RAW),
      knowsHextile ? encodeHextile(canvas, this.#pixels, this.format) : this.#raw(canvas),
    ])
  }

  arrow(): Buffer {
    return encodeArrow(this.#pixels[COLOUR.bar]!, this.#pixels[COLOUR.field]!, this.format)
  }

  #raw({ pixels }: Canvas): Buffer {
    const size = bytesPerPixel(this.format)
    const bytes = Buffer.allocUnsafe(pixels.length * size)
    for (let at = 0; at < pixels.length; at++) {
      const pixel = this.#pixels[pixels[at]!]!
      for (let byte = 0; byte < size; byte++) bytes[at * size + byte] = pixel[byte]!
    }
    return bytes
  }
}

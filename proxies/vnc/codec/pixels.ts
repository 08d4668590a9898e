/** Converts colours to the bytes of a viewer's pixels. */
import { bytesPerPixel, type PixelFormat } from './pixel-format.ts'

/** Returns the nearest colour of a true-colour format; each part has 8 bits. */
export function pixelOf(
  { redMax, greenMax, blueMax, redShift, greenShift, blueShift }: PixelFormat,
  red: number,
  green: number,
  blue: number,
): number {
  return (
    ((scaled(red, redMax) << redShift) |
      (scaled(green, greenMax) << greenShift) |
      (scaled(blue, blueMax) << blueShift)) >>>
    0
  )
}

function scaled(part: number, max: number): number {
  return Math.floor((part * max + 127) / 255)
}

/** Writes a pixel at `at`, and returns the place after it. */
export function putPixel(to: Uint8Array, at: number, pixel: number, format: PixelFormat): number {
  const size = bytesPerPixel(format)
  for (let byte = 0; byte < size; byte++) {
    to[at + byte] = pixel >>> (8 * (format.isBigEndian ? size - 1 - byte : byte))
  }
  return at + size
}

/** ZRLE (RFC 6143 section 7.7.6) as the bastion sends it: tiles of one colour, with a palette, or raw. */
import { Buffer } from 'node:buffer'
import { Deflate, Z_SYNC_FLUSH } from 'pako'
import { bytesPerCompactPixel, bytesPerPixel, type PixelFormat } from '../codec/pixel-format.ts'

const TILE = 64
const RAW = 0
const SOLID = 1
/** Colours of a tile that is sent with a palette. */
const MAX_PALETTE = 16
/** The level of zlib that costs little time. */
const LEVEL = 2

/** The zlib stream of one viewer, from its first rectangle to its last. */
export class ZrleStream {
  readonly #deflate = new Deflate({ level: LEVEL })
  #output: Uint8Array[] = []

  constructor() {
    this.#deflate.onData = (chunk) => {
      this.#output.push(Uint8Array.from(chunk as Uint8Array))
    }
  }

  /** Returns the data of a rectangle; `pixels` are row by row, in the format. */
  rectangle(pixels: Uint32Array, width: number, height: number, format: PixelFormat): Buffer {
    const tiles: Uint8Array[] = []
    for (let top = 0; top < height; top += TILE) {
      for (let left = 0; left < width; left += TILE) {
        tiles.push(
          tileOf(
            pixels,
            width,
            left,
            top,
            Math.min(TILE, width - left),
            Math.min(TILE, height - top),
            format,
          ),
        )
      }
    }
    this.#output = []
    this.#deflate.push(Buffer.concat(tiles), Z_SYNC_FLUSH)
    const data = Buffer.concat(this.#output)
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, data])
  }
}

function tileOf(
  pixels: Uint32Array,
  stride: number,
  left: number,
  top: number,
  width: number,
  height: number,
  format: PixelFormat,
): Uint8Array {
  const places = new Map<number, number>()
  for (let y = top; y < top + height && places.size <= MAX_PALETTE; y++) {
    for (let at = y * stride + left; at < y * stride + left + width; at++) {
      if (!places.has(pixels[at]!)) places.set(pixels[at]!, places.size)
      if (places.size > MAX_PALETTE) break
    }
  }
  const size = bytesPerCompactPixel(format)
  const put = compactPixels(format)
  if (places.size > MAX_PALETTE) {
    const bytes = Buffer.allocUnsafe(1 + width * height * size)
    bytes[0] = RAW
    let to = 1
    for (let y = top; y < top + height; y++) {
      for (let at = y * stride + left; at < y * stride + left + width; at++) {
        put(bytes, to, pixels[at]!)
        to += size
      }
    }
    return bytes
  }
  const bits = places.size <= 2 ? 1 : places.size <= 4 ? 2 : 4
  const row = places.size === 1 ? 0 : Math.ceil((width * bits) / 8)
  const bytes = Buffer.alloc(1 + places.size * size + row * height)
  bytes[0] = places.size === 1 ? SOLID : places.size
  for (const [pixel, place] of places) put(bytes, 1 + place * size, pixel)
  if (row === 0) return bytes
  const begin = 1 + places.size * size
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const bit = x * bits
      const place = places.get(pixels[(top + y) * stride + left + x]!)!
      bytes[begin + y * row + (bit >> 3)]! |= place << (8 - bits - (bit & 7))
    }
  }
  return bytes
}

/** Returns a function that writes a CPIXEL (RFC 6143 section 7.7.5). */
function compactPixels(format: PixelFormat): (to: Uint8Array, at: number, pixel: number) => void {
  const size = bytesPerCompactPixel(format)
  const { redMax, redShift, greenMax, greenShift, blueMax, blueShift } = format
  const mask = (redMax << redShift) | (greenMax << greenShift) | (blueMax << blueShift)
  // Three bytes of four: the lowest or the highest is unused.
  const skipped = size < bytesPerPixel(format) && (mask & 0xff000000) !== 0 ? 8 : 0
  return (to, at, pixel) => {
    const value = pixel >>> skipped
    for (let byte = 0; byte < size; byte++) {
      to[at + byte] = value >>> (8 * (format.isBigEndian ? size - 1 - byte : byte))
    }
  }
}

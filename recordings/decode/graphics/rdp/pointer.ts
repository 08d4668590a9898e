/** The pointer's pictures (MS-RDPBCGR 2.2.9.1.1.4.4 to 2.2.9.1.1.4.6, 2.2.9.1.2.1.11), and the cache that servers keep. */
import type { Cursor } from '../cursor.ts'
import { rgb } from '../framebuffer.ts'
import { MalformedGraphics } from '../malformed.ts'
import { toColours } from './colours.ts'
import { UpdateReader } from './reader.ts'

/** Side of large pointers; others have at most 96. */
export const MAX_POINTER_SIDE = 384
/** Entries of the cache: clients offer about 20. */
export const POINTER_CACHE_LIMIT = 128
/** Pixels of all pointers in the cache: each entry may be as large as the largest pointer. */
export const MAX_CACHED_PIXELS = 2 ** 21

const WHAT = 'pointer'
const WHITE = rgb(0xff, 0xff, 0xff)
const BLACK = rgb(0, 0, 0)
const TRANSPARENT = 0
const DEPTHS: ReadonlySet<number> = new Set([1, 8, 15, 16, 24, 32])

export interface Picture {
  cacheIndex: number
  cursor: Cursor
}

interface Masks {
  width: number
  height: number
  depth: number
  colours: Uint8Array
  /** A bit for each pixel, set where the background shows through. Undefined if none was received. */
  transparency: Uint8Array | undefined
}

/** Parses a colour pointer: a new pointer of 24 bits. */
export function parseColourPointer(data: Uint8Array, palette: Uint32Array): Picture {
  return parse(new UpdateReader(data, WHAT), 24, palette, false)
}

/** Parses a new pointer: `u16 depth` before the rest. */
export function parseNewPointer(data: Uint8Array, palette: Uint32Array): Picture {
  const reader = new UpdateReader(data, WHAT)
  return parse(reader, reader.u16(), palette, false)
}

/** Parses a large pointer: lengths of four bytes. */
export function parseLargePointer(data: Uint8Array, palette: Uint32Array): Picture {
  const reader = new UpdateReader(data, WHAT)
  return parse(reader, reader.u16(), palette, true)
}

function parse(reader: UpdateReader, depth: number, palette: Uint32Array, isLarge: boolean): Picture {
  if (!DEPTHS.has(depth)) throw new MalformedGraphics(`${WHAT}: expected a depth of RDP, got ${depth} bits`)
  const cacheIndex = reader.u16()
  const [hotX, hotY, width, height] = [reader.u16(), reader.u16(), reader.u16(), reader.u16()]
  if (MAX_POINTER_SIDE < width || MAX_POINTER_SIDE < height) {
    throw new MalformedGraphics(
      `${WHAT}: expected at most ${MAX_POINTER_SIDE} pixels a side, got ${width} × ${height}`,
    )
  }
  const transparencyLength = isLarge ? reader.u32() : reader.u16()
  const colours = reader.bytes(isLarge ? reader.u32() : reader.u16())
  const transparency = transparencyLength > 0 ? reader.bytes(transparencyLength) : undefined
  const pixels = pixelsOf({ width, height, depth, colours, transparency }, palette)
  return { cacheIndex, cursor: { width, height, hotX, hotY, pixels } }
}

function pixelsOf(masks: Masks, palette: Uint32Array): Uint32Array {
  const { width, height, depth, colours, transparency } = masks
  const rowLength = padded(Math.ceil((width * depth) / 8))
  const bitsLength = padded(Math.ceil(width / 8))
  require(colours, rowLength * height)
  if (transparency) require(transparency, bitsLength * height)
  const pixels = new Uint32Array(width * height)
  for (let y = 0; y < height; y++) {
    // The lowest row comes first, except at one bit per pixel.
    const row = depth === 1 ? y : height - 1 - y
    const colour = rowColours(colours.subarray(row * rowLength), width, depth, palette)
    for (let x = 0; x < width; x++) {
      const isBelow = transparency !== undefined && isSet(transparency, row * bitsLength, x)
      pixels[y * width + x] = isBelow ? shownThrough(colour[x]!, x + y) : colour[x]!
    }
  }
  return pixels
}

/**
 * Returns the colour of a transparent pixel: black shows the background, white inverts it, which is drawn as
 * a chequered pattern.
 */
function shownThrough(colour: number, place: number): number {
  if (colour === BLACK) return TRANSPARENT
  if (colour === WHITE) return place % 2 === 0 ? WHITE : BLACK
  return colour
}

/** Returns the colours, premultiplied by alpha if there is one. */
function rowColours(row: Uint8Array, width: number, depth: number, palette: Uint32Array): Uint32Array {
  const values = new Uint32Array(width)
  if (depth === 1) {
    for (let x = 0; x < width; x++) values[x] = isSet(row, 0, x) ? WHITE : BLACK
    return values
  }
  const length = Math.ceil(depth / 8)
  for (let x = 0; x < width; x++) {
    let value = 0
    for (let byte = 0; byte < length; byte++) value |= row[x * length + byte]! << (8 * byte)
    values[x] = value
  }
  if (depth !== 32) {
    toColours(values, depth, palette)
    return values
  }
  for (let x = 0; x < width; x++) values[x] = premultiplied(values[x]!)
  return values
}

/** Converts 0xAARRGGBB to 0xAABBGGRR, premultiplied by alpha. */
function premultiplied(value: number): number {
  const alpha = value >>> 24
  const part = (shift: number): number => Math.round((((value >>> shift) & 0xff) * alpha) / 0xff)
  return ((alpha << 24) | (part(0) << 16) | (part(8) << 8) | part(16)) >>> 0
}

/** Pads rows to whole words of two bytes. */
const padded = (length: number): number => (length + 1) & ~1

const isSet = (bits: Uint8Array, at: number, x: number): boolean =>
  ((bits[at + (x >> 3)]! >> (7 - (x & 7))) & 1) === 1

function require(bytes: Uint8Array, length: number): void {
  if (bytes.length >= length) return
  throw new MalformedGraphics(`${WHAT}: expected a mask of ${length} bytes, got ${bytes.length}`)
}

/** Pointers that a server has sent and may show again by their number. */
export class PointerCache {
  readonly #cursors = new Map<number, Cursor>()
  #pixels = 0

  /**
   * Stores a pointer, and removes the oldest ones if the cache would be too large. Throws MalformedGraphics
   * for a number beyond the limit.
   */
  set({ cacheIndex, cursor }: Picture): void {
    if (POINTER_CACHE_LIMIT <= cacheIndex) {
      throw new MalformedGraphics(
        `${WHAT}: expected a number below ${POINTER_CACHE_LIMIT}, got ${cacheIndex}`,
      )
    }
    this.#drop(cacheIndex)
    this.#cursors.set(cacheIndex, cursor)
    this.#pixels += cursor.pixels.length
    for (const oldest of this.#cursors.keys()) {
      if (this.#pixels <= MAX_CACHED_PIXELS) return
      this.#drop(oldest)
    }
  }

  /** Throws MalformedGraphics for a number without a pointer. */
  get(cacheIndex: number): Cursor {
    const cursor = this.#cursors.get(cacheIndex)
    if (cursor) return cursor
    throw new MalformedGraphics(`${WHAT}: expected a number of the cache, got ${cacheIndex}`)
  }

  #drop(cacheIndex: number): void {
    this.#pixels -= this.#cursors.get(cacheIndex)?.pixels.length ?? 0
    this.#cursors.delete(cacheIndex)
  }

  entries(): Picture[] {
    return [...this.#cursors].map(([cacheIndex, cursor]) => ({ cacheIndex, cursor }))
  }
}

/** The pixels of a target's desktop, with the areas that have changed. */
import { DirtyRectangles } from './dirty.ts'
import { MalformedGraphics } from './malformed.ts'
import type { Rectangle, Size } from './rectangle.ts'

/** A desktop of 8K fits: 128 MiB. */
export const MAX_PIXELS = 2 ** 25
/** Opaque black; colours are 0xAABBGGRR, so that on little-endian machines their bytes are red, green, blue, alpha. */
export const BLACK = 0xff00_0000

export function rgb(red: number, green: number, blue: number): number {
  return (BLACK | (blue << 16) | (green << 8) | red) >>> 0
}

/** Colour of pixels that could not be drawn: their old content is no longer valid. */
export const UNDRAWN = rgb(128, 128, 128)

/** Throws MalformedGraphics if a desktop of this size is too large to draw. */
export function requireSize({ width, height }: Size): void {
  if (width > 0 && height > 0 && width * height <= MAX_PIXELS) return
  throw new MalformedGraphics(
    `expected a desktop of 1 to ${MAX_PIXELS} pixels, got one of ${width} × ${height}`,
  )
}

export class Framebuffer {
  #width: number
  #height: number
  #pixels: Uint32Array<ArrayBuffer>
  readonly #dirty = new DirtyRectangles()

  /** Starts black. Throws MalformedGraphics if the size is too large. */
  constructor(size: Size) {
    requireSize(size)
    this.#width = size.width
    this.#height = size.height
    this.#pixels = new Uint32Array(size.width * size.height).fill(BLACK)
    this.touch({ x: 0, y: 0, ...size })
  }

  get width(): number {
    return this.#width
  }

  get height(): number {
    return this.#height
  }

  /** Pixels row by row from the top. A caller that writes to them calls `touch`. */
  get pixels(): Uint32Array<ArrayBuffer> {
    return this.#pixels
  }

  /** The same pixels as bytes: red, green, blue, 255. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#pixels.buffer)
  }

  /**
   * Keeps the area common to both sizes; the rest is black. Throws MalformedGraphics if the size is too
   * large.
   */
  resize(size: Size): void {
    if (size.width === this.#width && size.height === this.#height) return
    requireSize(size)
    const pixels = new Uint32Array(size.width * size.height).fill(BLACK)
    const columns = Math.min(size.width, this.#width)
    for (let y = 0; y < Math.min(size.height, this.#height); y++) {
      pixels.set(this.#pixels.subarray(y * this.#width, y * this.#width + columns), y * size.width)
    }
    this.#pixels = pixels
    this.#width = size.width
    this.#height = size.height
    this.touch({ x: 0, y: 0, ...size })
  }

  /** Throws MalformedGraphics unless the rectangle lies inside. */
  requireInside({ x, y, width, height }: Rectangle): void {
    if (x >= 0 && y >= 0 && x + width <= this.#width && y + height <= this.#height) return
    throw new MalformedGraphics(
      `expected a rectangle inside ${this.#width} × ${this.#height}, got ${width} × ${height} at ${x}, ${y}`,
    )
  }

  /** Fills the rectangle, which must lie inside. */
  fill({ x, y, width, height }: Rectangle, colour: number): void {
    for (let row = y; row < y + height; row++) {
      const from = row * this.#width + x
      this.#pixels.fill(colour, from, from + width)
    }
  }

  /** Copies the area at `fromX`, `fromY` to the rectangle; both must lie inside, and may overlap. */
  copy(fromX: number, fromY: number, { x, y, width, height }: Rectangle): void {
    const isUpwards = fromY >= y
    for (let step = 0; step < height; step++) {
      const row = isUpwards ? step : height - 1 - step
      const from = (fromY + row) * this.#width + fromX
      this.#pixels.copyWithin((y + row) * this.#width + x, from, from + width)
    }
  }

  /** Marks the pixels of this rectangle as changed. */
  touch(rectangle: Rectangle): void {
    this.#dirty.add(rectangle)
  }

  /** Returns the areas that may have changed since the last call: a few rectangles that lie inside. */
  takeDirty(): Rectangle[] {
    return this.#dirty.take(this)
  }

  clone(): Framebuffer {
    const copy = new Framebuffer(this)
    copy.#pixels.set(this.#pixels)
    return copy
  }
}

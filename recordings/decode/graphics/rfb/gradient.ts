/**
 * Tight's gradient filter: each component of a pixel is stored as the difference to a prediction, which is
 * the left pixel plus the upper pixel minus the upper left pixel.
 */
import { rgb } from '../framebuffer.ts'
import type { PixelReader, PixelReaders } from './pixel-format.ts'

const PARTS = 3
const BYTE = 0xff

/** Reads the rows of one rectangle, one row per call. */
export class GradientReader implements PixelReader {
  readonly length: number
  readonly #readers: PixelReaders
  readonly #maxima: readonly number[]
  readonly #shifts: readonly number[]
  #above: Uint16Array
  #row: Uint16Array

  constructor(readers: PixelReaders, width: number) {
    const { redMax, greenMax, blueMax, redShift, greenShift, blueShift } = readers.format
    this.length = readers.tight.length
    this.#readers = readers
    this.#maxima = readers.isTight24 ? [BYTE, BYTE, BYTE] : [redMax, greenMax, blueMax]
    this.#shifts = [redShift, greenShift, blueShift]
    // One pixel of zeros precedes each row.
    this.#above = new Uint16Array((width + 1) * PARTS)
    this.#row = new Uint16Array((width + 1) * PARTS)
  }

  read(source: Uint8Array, from: number, target: Uint32Array, to: number, count: number): void {
    const row = this.#row
    const above = this.#above
    for (let pixel = 0; pixel < count; pixel++) {
      const value = this.#readers.isTight24 ? 0 : this.#value(source, from + pixel * this.length)
      for (let part = 0; part < PARTS; part++) {
        const max = this.#maxima[part]!
        const at = (pixel + 1) * PARTS + part
        const guess = row[at - PARTS]! + above[at]! - above[at - PARTS]!
        const difference = this.#readers.isTight24
          ? source[from + pixel * PARTS + part]!
          : (value >>> this.#shifts[part]!) & max
        row[at] = (Math.min(max, Math.max(0, guess)) + difference) & max
      }
      target[to + pixel] = this.#colour(row, (pixel + 1) * PARTS)
    }
    this.#row = above
    this.#above = row
  }

  one(source: Uint8Array, from: number): number {
    const colour = new Uint32Array(1)
    this.read(source, from, colour, 0, 1)
    return colour[0]!
  }

  #value(source: Uint8Array, from: number): number {
    const { isBigEndian } = this.#readers.format
    let value = 0
    for (let step = 0; step < this.length; step++) {
      value = value * 256 + source[from + (isBigEndian ? step : this.length - 1 - step)]!
    }
    return value
  }

  #colour(row: Uint16Array, at: number): number {
    if (this.#readers.isTight24) return rgb(row[at]!, row[at + 1]!, row[at + 2]!)
    let value = 0
    for (let part = 0; part < PARTS; part++) value += row[at + part]! * 2 ** this.#shifts[part]!
    return this.#readers.colourOf(value)
  }
}

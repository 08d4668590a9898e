/**
 * A picture of at most 256 colours in memory: a byte for each pixel, the index of its colour in a palette.
 */
import { GLYPH_HEIGHT, GLYPH_WIDTH, glyphOf } from './font.ts'

export class Canvas {
  readonly width: number
  readonly height: number
  /** Row by row from the top. */
  readonly pixels: Uint8Array

  constructor(width: number, height: number) {
    this.width = width
    this.height = height
    this.pixels = new Uint8Array(width * height)
  }

  /** Fills a rectangle; parts outside are left out. */
  fill(left: number, top: number, width: number, height: number, colour: number): void {
    const from = Math.max(0, left)
    const to = Math.min(this.width, left + width)
    if (to <= from) return
    for (let y = Math.max(0, top); y < Math.min(this.height, top + height); y++) {
      this.pixels.fill(colour, y * this.width + from, y * this.width + to)
    }
  }

  /**
   * Draws one character of the font with its upper left corner there, and no background. Bold is drawn twice.
   */
  glyph(left: number, top: number, codePoint: number, colour: number, isBold = false): void {
    const rows = glyphOf(codePoint)
    for (let y = 0; y < GLYPH_HEIGHT; y++) {
      const row = rows[y]!
      const bits = isBold ? row | (row >> 1) : row
      if (bits === 0 || top + y < 0 || top + y >= this.height) continue
      for (let x = 0; x < GLYPH_WIDTH; x++) {
        const at = left + x
        if ((bits & (0x80 >> x)) !== 0 && at >= 0 && at < this.width) {
          this.pixels[(top + y) * this.width + at] = colour
        }
      }
    }
  }

  /** Draws a character with each of the font's pixels as a square of `scale` pixels. */
  scaledGlyph(
    left: number,
    top: number,
    codePoint: number,
    colour: number,
    scale: number,
    isBold = false,
  ): void {
    if (scale === 1) {
      this.glyph(left, top, codePoint, colour, isBold)
      return
    }
    const rows = glyphOf(codePoint)
    for (let y = 0; y < GLYPH_HEIGHT; y++) {
      const row = rows[y]!
      const bits = isBold ? row | (row >> 1) : row
      for (let x = 0; x < GLYPH_WIDTH; x++) {
        if ((bits & (0x80 >> x)) !== 0) this.fill(left + x * scale, top + y * scale, scale, scale, colour)
      }
    }
  }
}

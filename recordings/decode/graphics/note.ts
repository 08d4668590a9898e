/** Draws a line at the bottom of a picture, with information that the picture cannot show. */
import { GLYPH_HEIGHT, GLYPH_WIDTH, glyphOf } from '../../../src/drawing/font.ts'
import { type Framebuffer, rgb } from './framebuffer.ts'

const BEHIND = rgb(160, 0, 0)
const TEXT = rgb(255, 255, 255)

/** Draws the text into the picture and cuts it to the width. */
export function drawNote(picture: Framebuffer, text: string): void {
  const { width, height, pixels } = picture
  const top = Math.max(0, height - GLYPH_HEIGHT)
  picture.fill({ x: 0, y: top, width, height: height - top }, BEHIND)
  for (const [column, character] of [...text].entries()) {
    const left = column * GLYPH_WIDTH
    if (left + GLYPH_WIDTH > width) return
    const rows = glyphOf(character.codePointAt(0)!)
    for (let y = 0; top + y < height; y++) {
      for (let x = 0; x < GLYPH_WIDTH; x++) {
        if ((rows[y]! & (0x80 >> x)) !== 0) pixels[(top + y) * width + left + x] = TEXT
      }
    }
  }
}

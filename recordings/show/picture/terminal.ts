/** A terminal's screen as a picture. */
import type { IBufferCell } from '@xterm/headless'
import { Canvas } from '../../../src/drawing/canvas.ts'
import { GLYPH_HEIGHT, GLYPH_WIDTH } from '../../../src/drawing/font.ts'
import type { Emulator, Size } from '../../decode/terminal/emulator.ts'
import { BACKGROUND, FOREGROUND, nearest } from './palette.ts'

/** Limit of a picture's cells; a larger screen is cropped. */
export const MAX_PICTURE: Size = { columns: 400, rows: 150 }
/** The bright half of the sixteen colours. */
const BRIGHT = 8

/** Returns a canvas for screens of this size, or for the part that may be shown. */
export function canvasFor({ columns, rows }: Size): Canvas {
  const height = Math.min(rows, MAX_PICTURE.rows) * GLYPH_HEIGHT
  // Video encoders need even sides.
  return new Canvas(Math.min(columns, MAX_PICTURE.columns) * GLYPH_WIDTH, height + (height % 2))
}

/** Draws the emulator's screen; call after the emulator has settled. */
export function drawTerminal(canvas: Canvas, emulator: Emulator): void {
  const { cursor, size } = emulator
  canvas.fill(0, 0, canvas.width, canvas.height, BACKGROUND)
  const columns = Math.min(size.columns, canvas.width / GLYPH_WIDTH)
  const rows = Math.min(size.rows, Math.floor(canvas.height / GLYPH_HEIGHT))
  for (let y = 0; y < rows; y++) {
    const line = emulator.line(y)
    for (let x = 0; x < columns; x++) {
      const cell = line?.getCell(x)
      if (cell) drawCell(canvas, cell, x, y, !cursor.isHidden && cursor.x === x && cursor.y === y)
    }
  }
}

function drawCell(canvas: Canvas, cell: IBufferCell, x: number, y: number, isCursor: boolean): void {
  const width = cell.getWidth()
  if (width === 0) return
  const inverted = Boolean(cell.isInverse()) !== isCursor
  const [fore, behind] = inverted
    ? [backgroundOf(cell), foregroundOf(cell)]
    : [foregroundOf(cell), backgroundOf(cell)]
  const left = x * GLYPH_WIDTH
  const top = y * GLYPH_HEIGHT
  canvas.fill(left, top, width * GLYPH_WIDTH, GLYPH_HEIGHT, behind)
  if (cell.isInvisible()) return
  const middle = left + ((width - 1) * GLYPH_WIDTH) / 2
  for (const character of cell.getChars()) {
    if (character !== ' ') canvas.glyph(middle, top, character.codePointAt(0)!, fore, Boolean(cell.isBold()))
  }
  if (cell.isUnderline()) canvas.fill(left, top + GLYPH_HEIGHT - 1, width * GLYPH_WIDTH, 1, fore)
  if (cell.isStrikethrough()) canvas.fill(left, top + (GLYPH_HEIGHT >> 1), width * GLYPH_WIDTH, 1, fore)
}

function foregroundOf(cell: IBufferCell): number {
  const colour = cell.getFgColor()
  if (cell.isFgRGB()) return nearest(colour)
  if (!cell.isFgPalette()) return cell.isBold() ? FOREGROUND + BRIGHT : FOREGROUND
  return cell.isBold() && colour < BRIGHT ? colour + BRIGHT : colour
}

function backgroundOf(cell: IBufferCell): number {
  if (cell.isBgRGB()) return nearest(cell.getBgColor())
  return cell.isBgPalette() ? cell.getBgColor() : BACKGROUND
}

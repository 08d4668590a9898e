/**
 * Draws an emulator's screen on the viewer's terminal: characters and colours of its cells, but none of the
 * recording's own sequences. A screen larger than the view is cropped.
 */
import { sgrOf } from '../../decode/terminal/attributes.ts'
import type { Emulator } from '../../decode/terminal/emulator.ts'

/** The part of the screen that is shown. */
export interface View {
  columns: number
  rows: number
  /** The cell in the upper left corner. */
  left: number
  top: number
}

/** Controls, and characters that reverse or hide the text around them. */
const TREACHEROUS = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g

/**
 * Returns one string for each row of the view; each begins at its first column and ends with plain colours.
 */
export function drawScreen(emulator: Emulator, view: View): string[] {
  const rows: string[] = []
  for (let row = 0; row < view.rows; row++) rows.push(drawRow(emulator, view, row + view.top))
  return rows
}

function drawRow(emulator: Emulator, { columns, left }: View, y: number): string {
  const { size, cursor } = emulator
  if (y >= size.rows) return '\x1b[K'
  const line = emulator.line(y)
  const end = Math.min(size.columns, left + columns)
  let text = ''
  let before = ''
  for (let x = left; x < end; x++) {
    const cell = line?.getCell(x)
    const width = cell?.getWidth() ?? 1
    // Half of a wide character: the other half is outside, or was drawn with it.
    if (width === 0) {
      if (x === left) text += ' '
      continue
    }
    const isCursor = !cursor.isHidden && cursor.x === x && cursor.y === y
    const look = `${cell ? sgrOf(cell) : '\x1b[m'}${isCursor ? '\x1b[7m' : ''}`
    if (look !== before) text += look
    before = look
    const characters = (cell?.getChars() || ' ').replace(TREACHEROUS, '\ufffd')
    text += x + width > end ? ' ' : characters
    // Terminals differ in the width of characters beyond ASCII.
    if (!/^[ -~]$/.test(characters) && x + width < end) text += `\x1b[${x - left + width + 1}G`
  }
  return `${text}\x1b[m${end - left < columns ? '\x1b[K' : ''}`
}

/** Writes only the rows that have changed since the last update. */
export class Display {
  #shown: string[] = []

  /** Returns the text that changes the terminal from the last rows to these. */
  update(rows: readonly string[]): string {
    let text = ''
    for (const [index, row] of rows.entries()) {
      if (this.#shown[index] !== row) text += `\x1b[${index + 1};1H${row}`
    }
    this.#shown = [...rows]
    return text
  }

  /** Redraws everything at the next update. */
  forget(): void {
    this.#shown = []
  }
}

/**
 * A terminal's state as a text that restores it when written to a fresh emulator of the same size: the screen
 * (and the main screen behind an alternate one), cursor, colours, scrolling region, modes, character sets,
 * tab stops.
 */
import type { IBuffer, Terminal } from '@xterm/headless'
import { backgroundOf, sgrOf } from './attributes.ts'
import { type Charset, type InnerBuffer, type Internals, internalsOf } from './internals.ts'

const DEFAULT_TAB = 8
const PLAIN = '\x1b[m'
/** Attributes, character set and saved cursor of a fresh terminal. */
const NOTHING_SET = `${PLAIN}\x1b(B`
const NOTHING_SAVED = `\x1b[1;1H${PLAIN}\x0f\x1b(B`

/** Returns the snapshot of an emulator that has no scrollback and is between two sequences. */
export function snapshotOf(terminal: Terminal): string {
  const inner = internalsOf(terminal)
  const { active, normal } = terminal.buffer
  let text = '\x1b[?7l'
  if (active.type === 'alternate') {
    text += `${bufferOf(terminal, normal, inner.normal)}${saved(terminal, inner.normal)}\x1b7`
    // The current background would fill the screen that is switched to.
    text += `${NOTHING_SET}\x1b[?1047h`
  } else {
    // Only the saved cursor of an alternate screen that was left is still in use.
    const left = saved(terminal, inner.alternate)
    if (left !== NOTHING_SAVED) text += `\x1b[?1047h${left}\x1b7\x1b[?1047l${NOTHING_SET}`
  }
  text += `${bufferOf(terminal, active, inner.active)}${saved(terminal, inner.active)}\x1b7`
  text += `\x1b(${designator(inner.charsets[0])}\x1b)${designator(inner.charsets[1])}`
  return text + modes(terminal, inner) + cursor(terminal, inner)
}

/** Returns the state that each of the two screens has of its own. */
function bufferOf(terminal: Terminal, buffer: IBuffer, inner: InnerBuffer): string {
  const region = `\x1b[${inner.scrollTop + 1};${inner.scrollBottom + 1}r`
  return `${rowsOf(buffer, terminal.rows)}${tabsOf(inner, terminal.cols)}${region}`
}

/** Returns every row that is not empty, each from its own first column. */
function rowsOf(buffer: IBuffer, rows: number): string {
  let text = ''
  for (let y = 0; y < rows; y++) {
    const row = rowOf(buffer, buffer.baseY + y)
    if (row !== '') text += `\x1b[${y + 1};1H${row}`
  }
  return text + PLAIN
}

function rowOf(buffer: IBuffer, y: number): string {
  const line = buffer.getLine(y)
  const columns = line?.length ?? 0
  let text = ''
  let skipped = 0
  let before = ''
  let wasWide = false
  for (let x = 0; x < columns; x++) {
    const cell = line?.getCell(x)
    const characters = cell?.getChars() ?? ''
    // The right half of a wide character has no width; neither has an accent without a letter before it.
    const isAlone = cell?.getWidth() === 0
    const isCovering = wasWide && !isAlone
    wasWide = cell?.getWidth() === 2
    if (!cell || (isAlone && characters === '')) continue
    if (isCovering) {
      // Write over a right half, which only the last column's contents can reach. A wide character without
      // room erases it.
      const covering = characters === '' ? `${backgroundOf(cell)}界` : sgrOf(cell) + characters
      if (x === columns - 1) text += covering
      continue
    }
    if (characters === '' && cell.isBgDefault()) {
      skipped++
      continue
    }
    if (skipped > 0) text += `\x1b[${skipped}C`
    skipped = 0
    const look = characters === '' ? backgroundOf(cell) : sgrOf(cell)
    // A sequence between them keeps the accent from the character before.
    if (look !== before || isAlone) text += look
    before = look
    // An erased cell has a background and no character: erase it again.
    if (characters === '') {
      text += '\x1b[X'
      skipped = 1
    } else {
      text += characters
    }
  }
  return text
}

function tabsOf({ tabs }: InnerBuffer, columns: number): string {
  const stops: number[] = []
  let isDefault = true
  for (let x = 0; x < columns; x++) {
    const stop = tabs[x] === true
    if (stop) stops.push(x)
    if (stop !== (x % DEFAULT_TAB === 0)) isDefault = false
  }
  return isDefault ? '' : `\x1b[3g${stops.map((x) => `\x1b[${x + 1}G\x1bH`).join('')}`
}

/**
 * Restores the saved cursor, attributes and character set (DECSC). A cursor that was saved one past the last
 * column is restored to the last column, and saved there.
 */
function saved(
  { cols, rows }: Terminal,
  { savedX, savedY, savedCurAttrData, savedCharset }: InnerBuffer,
): string {
  const position = `\x1b[${Math.min(savedY, rows - 1) + 1};${Math.min(savedX, cols - 1) + 1}H`
  return `${position}${sgrOf(savedCurAttrData)}\x0f\x1b(${designator(savedCharset)}`
}

function designator(charset: Charset): string {
  if (charset?.['q'] !== undefined) return '0'
  return charset?.['#'] === undefined ? 'B' : 'A'
}

function modes(terminal: Terminal, inner: Internals): string {
  let text = terminal.modes.wraparoundMode ? '\x1b[?7h' : '\x1b[?7l'
  if (terminal.modes.insertMode) text += '\x1b[4h'
  if (inner.isCursorHidden) text += '\x1b[?25l'
  if (terminal.modes.originMode) text += '\x1b[?6h'
  return text
}

/** Returns the sequence for a character set that was selected, or restored with a saved cursor. */
function charset({ shift, charset: now, charsets }: Internals): string {
  return `${shift === 1 ? '\x0e' : '\x0f'}${now === charsets[shift] ? '' : '\x1b8'}`
}

/**
 * Returns whether a snapshot can restore this state. It cannot if a character set is neither selected nor
 * saved, or if the character before the cursor is gone or half of a wide one.
 */
export function canSnapshot(terminal: Terminal): boolean {
  const inner = internalsOf(terminal)
  const { charset: now, charsets, shift, active } = inner
  const last = isPrintedAgain(terminal, inner) ? lastPrinted(terminal, inner).characters : undefined
  if (last === '') return false
  if (now === charsets[shift]) return true
  return now === active.savedCharset && (last === undefined || !isReplaced(last, now))
}

/**
 * Returns whether the last character is printed again: REP may repeat it, and the cursor gets past the last
 * column only by printing.
 */
function isPrintedAgain(terminal: Terminal, { active, hasJustPrinted }: Internals): boolean {
  return active.x >= terminal.cols || (active.x > 0 && hasJustPrinted)
}

/**
 * Returns the cell before the cursor, and its column. No characters if they are gone, or cannot be printed
 * there again.
 */
function lastPrinted(terminal: Terminal, { active: { x, y } }: Internals) {
  const { active } = terminal.buffer
  const line = active.getLine(active.baseY + y)
  const before = line?.getCell(x - 1)
  const isRightHalf = before?.getWidth() === 0 && before.getChars() === ''
  const column = isRightHalf ? x - 2 : x - 1
  const cell = line?.getCell(column)
  // Without wrapping, text past the last column may stand on a wide character's right half, or stop before
  // it.
  const isOverWide = line?.getCell(column - 1)?.getWidth() === 2
  const endsHere = (cell?.getWidth() || 1) === x - column
  const characters = endsHere && !isOverWide ? (cell?.getChars() ?? '') : ''
  return { column, width: x - column, characters, look: cell ? sgrOf(cell) : PLAIN }
}

/**
 * Returns whether printing a cell's characters would show others; accents after the first are in no character
 * set.
 */
function isReplaced(characters: string, charset: Charset): boolean {
  return charset?.[characters.charAt(0)] !== undefined
}

/** Prints a character of the screen again: a character set must not replace it a second time. */
function printed(characters: string, { charset: now, charsets, shift }: Internals): string {
  if (!isReplaced(characters, now)) return characters
  const [which, chosen] = shift === 1 ? [')', charsets[1]] : ['(', charsets[0]]
  return `\x1b${which}B${characters}\x1b${which}${designator(chosen)}`
}

function cursor(terminal: Terminal, inner: Internals): string {
  const { x, y, scrollTop } = inner.active
  // In origin mode rows count from the top of the scrolling region.
  const row = terminal.modes.originMode ? y - scrollTop + 1 : y + 1
  const look = sgrOf(inner.attributes)
  const set = charset(inner)
  if (!isPrintedAgain(terminal, inner)) return `${set}\x1b[${row};${x + 1}H${look}`
  const last = lastPrinted(terminal, inner)
  let text = `${set}\x1b[${row};${last.column + 1}H${last.look}`
  // In insert mode the character shifts the row: delete the place that it leaves.
  if (terminal.modes.insertMode) text += `\x1b[${last.width}P`
  text += printed(last.characters, inner)
  // A sequence after the character prevents its repetition.
  return inner.hasJustPrinted ? text : text + look
}

/**
 * The screen of a terminal, as far as command lines need it: characters, rows that form one line, the cursor.
 * Colours, titles, character sets and replies are left out. The alternate screen is only a flag: while it is
 * shown, this screen does not change. Driven by the parser of recordings/decode/terminal/parser.ts.
 */
import type { TerminalHandler } from '../../../recordings/decode/terminal/parser.ts'
import { clamp, Grid } from './grid.ts'
import { widthOf } from './width.ts'

const BS = 0x08
const HT = 0x09
const LF = 0x0a
const FF = 0x0c
const CR = 0x0d
const TAB_STOP = 8
const FIRST_NOT_ASCII = 0x7f

export class Screen extends Grid implements TerminalHandler {
  row = 0
  column = 0
  /** Set while the alternate screen is shown (DECSET 47, 1047, 1049): a full-screen program. */
  alternate = false
  /** Set while bracketed paste is on (DECSET 2004): a line editor waits for input. */
  bracketedPaste = false
  /** Number of characters written so far. */
  written = 0
  /** Set if the cursor was moved to a row by its number, as full-screen programs do. The reader resets it. */
  addressed = false
  /**
   * Set while a line is typed. Some line editors send CR LF when a row is full, instead of relying on the
   * margin: then the line continues.
   */
  isEdited = false
  /** Called before the cursor leaves its row downwards. */
  onLineFeed: (() => void) | undefined
  /** Called when bracketed paste was turned off. */
  onPasteOff: (() => void) | undefined

  #top = 0
  #bottom: number
  /** The last column is written, and the next character goes to the next row (DECAWM). */
  #atMargin = false
  /** Set while nothing but CR followed the filling of the row. */
  #filled = false
  #wraps = true
  #inserts = false
  #last = 0
  #saved = { row: 0, column: 0 }

  constructor(columns: number, rows: number) {
    super(columns, rows)
    this.#bottom = this.rows - 1
  }

  /** Whether the row was just filled up to the margin. */
  get isFilled(): boolean {
    return this.#atMargin || this.#filled
  }

  /** The cell after the last written character: the cursor, or the margin. */
  get cursor(): { row: number; column: number } {
    return { row: this.row, column: this.column + (this.#atMargin ? 1 : 0) }
  }

  /** Returns the last `cells` cells before the cursor, or its whole line if the line begins within them. */
  textBefore(cells: number): string {
    const { cursor } = this
    if (cursor.column < cells) return this.text(this.span(this.row), cursor)
    return this.at(this.row)?.text(cursor.column, cursor.column - cells) ?? ' '.repeat(cells)
  }

  resize(columns: number, rows: number): void {
    this.row -= this.reshape(columns, rows, this.row)
    this.column = Math.min(this.column, this.columns - 1)
    this.#atMargin = false
    this.#filled = false
    this.#top = 0
    this.#bottom = this.rows - 1
  }

  /** Empties the screen and puts the cursor in its last row, for output whose beginning is unknown. */
  forget(): void {
    this.#reset()
    this.gone += this.rows
    this.row = this.rows - 1
  }

  print(text: string): void {
    if (this.alternate) return
    for (let at = 0; at < text.length; at++) {
      const unit = text.charCodeAt(at)
      if (unit < FIRST_NOT_ASCII) {
        this.#put(unit, 1)
        continue
      }
      const code = text.codePointAt(at)!
      if (code > 0xffff) at++
      const width = widthOf(code)
      if (width === 0) this.#combine(code)
      else this.#put(code, width)
    }
  }

  control(code: number): void {
    if (this.alternate) return
    if (code === BS) this.#moveTo(this.row, this.column - 1)
    else if (code === HT) this.#moveTo(this.row, (Math.floor(this.column / TAB_STOP) + 1) * TAB_STOP)
    else if (LF <= code && code <= FF) this.#lineFeed()
    else if (code === CR) {
      const filled = this.#atMargin || this.#filled
      this.#moveTo(this.row, 0)
      this.#filled = filled
    }
  }

  escape(intermediates: string, final: string): void {
    if (intermediates === '' && final === 'c') this.#reset()
    if (this.alternate || intermediates !== '') return
    switch (final) {
      case 'D':
        this.#lineFeed()
        break
      case 'E':
        this.#lineFeed()
        this.#moveTo(this.row, 0)
        break
      case 'M':
        if (this.row === this.#top) this.scroll(this.#top, this.#bottom, -1)
        else this.#moveTo(this.row - 1, this.column)
        break
      case '7':
        this.#saved = { row: this.row, column: this.column }
        break
      case '8':
        this.#moveTo(this.#saved.row, this.#saved.column)
    }
  }

  csi(prefix: string, parameters: string, intermediates: string, final: string): void {
    if (prefix === '?' && intermediates === '' && (final === 'h' || final === 'l')) {
      for (const mode of parameters.split(';')) this.#setPrivateMode(mode, final === 'h')
      return
    }
    if (prefix === '' && intermediates === '!' && final === 'p') this.#resetModes()
    if (this.alternate || prefix !== '' || intermediates !== '') return
    const [first = 0, second = 0] = parameters.split(';').map((text) => Number.parseInt(text, 10) || 0)
    this.#act(final, first, second)
  }

  #act(final: string, first: number, second: number): void {
    const count = Math.max(1, first)
    const { row, column } = this
    const line = this.at(row)
    switch (final) {
      case 'A':
      case 'F':
        this.#moveTo(Math.max(row >= this.#top ? this.#top : 0, row - count), final === 'F' ? 0 : column)
        break
      case 'B':
      case 'e':
      case 'E': {
        const lowest = row <= this.#bottom ? this.#bottom : this.rows - 1
        this.#moveTo(Math.min(lowest, row + count), final === 'E' ? 0 : column)
        break
      }
      case 'C':
      case 'a':
        this.#moveTo(row, column + count)
        break
      case 'D':
        this.#moveTo(row, column - count)
        break
      case 'G':
      case '`':
        this.#moveTo(row, count - 1)
        break
      case 'H':
      case 'f':
        this.#address(count - 1, Math.max(1, second) - 1)
        break
      case 'd':
        this.#address(count - 1, column)
        break
      case 'J':
        this.#eraseDisplay(first)
        break
      case 'K':
        this.#eraseLine(row, first)
        break
      case 'X':
        line?.erase(column, Math.min(this.columns, column + count))
        break
      case '@':
        line?.insert(column, count)
        break
      case 'P':
        line?.remove(column, count)
        break
      case 'b':
        for (let times = Math.min(count, this.columns); times > 0 && this.#last > 0; times--) {
          this.#put(this.#last, widthOf(this.#last) || 1)
        }
        break
      case 'L':
      case 'M':
        if (this.#top <= row && row <= this.#bottom) {
          this.scroll(row, this.#bottom, final === 'L' ? -count : count)
          this.#moveTo(row, 0)
        }
        break
      case 'S':
      case 'T':
        this.scroll(this.#top, this.#bottom, final === 'S' ? count : -count)
        break
      case 'r':
        this.#setMargins(count - 1, (second || this.rows) - 1)
        break
      case 's':
        this.#saved = { row, column }
        break
      case 'u':
        this.#moveTo(this.#saved.row, this.#saved.column)
        break
      case 'h':
      case 'l':
        if (first === 4) this.#inserts = final === 'h'
    }
  }

  #setPrivateMode(mode: string, on: boolean): void {
    switch (mode) {
      case '7':
        this.#wraps = on
        break
      case '2004':
        this.bracketedPaste = on
        if (!on) this.onPasteOff?.()
        break
      case '47':
      case '1047':
        this.alternate = on
        break
      case '1049':
        if (on && !this.alternate) this.#saved = { row: this.row, column: this.column }
        if (!on && this.alternate) this.#moveTo(this.#saved.row, this.#saved.column)
        this.alternate = on
    }
  }

  #put(code: number, wanted: 1 | 2): void {
    const width = Math.min(wanted, this.columns)
    this.#filled = false
    this.written++
    if (this.#atMargin || this.column + width > this.columns) {
      if (this.#wraps) {
        const full = this.line(this.row)
        this.#index()
        full.continues = true
        this.column = 0
      } else {
        this.column = this.columns - width
      }
      this.#atMargin = false
    }
    const line = this.line(this.row)
    if (this.#inserts) line.insert(this.column, width)
    line.put(this.column, code, width)
    this.#last = code
    this.column += width
    if (this.column >= this.columns) {
      this.column = this.columns - 1
      this.#atMargin = true
    }
  }

  #combine(code: number): void {
    const at = this.#atMargin ? this.column : this.column - 1
    if (at >= 0) this.at(this.row)?.combine(at, code)
  }

  #lineFeed(): void {
    this.onLineFeed?.()
    if (this.#filled && this.isEdited) this.line(this.row).continues = true
    this.#filled = false
    this.#index()
    this.#atMargin = false
  }

  #index(): void {
    if (this.row === this.#bottom) this.scroll(this.#top, this.#bottom, 1)
    else if (this.row < this.rows - 1) this.row++
  }

  #moveTo(row: number, column: number): void {
    this.row = clamp(row, 0, this.rows - 1)
    this.column = clamp(column, 0, this.columns - 1)
    this.#atMargin = false
    this.#filled = false
  }

  #address(row: number, column: number): void {
    // Home precedes the clearing of a screen, which shells do too.
    if (row !== this.row && (row !== 0 || column !== 0)) this.addressed = true
    this.#moveTo(row, column)
  }

  #setMargins(top: number, bottom: number): void {
    const lowest = Math.min(bottom, this.rows - 1)
    if (top >= lowest) return
    if (top > 0 || lowest < this.rows - 1) this.addressed = true
    this.#top = top
    this.#bottom = lowest
    this.#moveTo(0, 0)
  }

  #eraseDisplay(mode: number): void {
    if (mode > 2) return
    if (mode !== 1) {
      if (mode === 0) this.#eraseLine(this.row, 0)
      this.clear(mode === 0 ? this.row + 1 : 0)
    } else {
      this.#eraseLine(this.row, 1)
      this.clear(0, this.row)
    }
  }

  #eraseLine(row: number, mode: number): void {
    if (mode === 0) this.at(row)?.erase(this.column, this.columns)
    else if (mode === 1) this.at(row)?.erase(0, this.column + 1)
    else if (mode === 2) this.clear(row, row + 1)
  }

  #reset(): void {
    this.clear()
    this.alternate = false
    this.bracketedPaste = false
    this.#resetModes()
    this.#moveTo(0, 0)
  }

  #resetModes(): void {
    this.#top = 0
    this.#bottom = this.rows - 1
    this.#wraps = true
    this.#inserts = false
    this.#saved = { row: 0, column: 0 }
  }
}

/**
 * The rows of a screen. A row is allocated when it is first written, 4 bytes a cell. There are at most
 * MAX_COLUMNS × MAX_ROWS cells, whatever size the client claims; narrow screens may have more rows, with
 * fewer cells.
 */
import { LineCells } from './line-cells.ts'

export const MAX_COLUMNS = 512
export const MAX_ROWS = 200
/** Number of cells of a narrow screen. */
const NARROW_CELLS = 80 * 24

/** Rows that form one line. */
export interface Span {
  first: number
  last: number
}

export class Grid {
  columns: number
  rows: number
  /** Rows scrolled off the top: `gone + row` numbers a row for good. */
  gone = 0
  #lines: (LineCells | undefined)[]

  constructor(columns: number, rows: number) {
    this.columns = clamp(columns, 1, MAX_COLUMNS)
    this.rows = boundRows(this.columns, rows)
    this.#lines = blank(this.rows)
  }

  /** Returns the row, or undefined if nothing was written there. */
  at(row: number): LineCells | undefined {
    return this.#lines[row]
  }

  line(row: number): LineCells {
    this.#lines[row] ??= new LineCells(this.columns)
    return this.#lines[row]
  }

  isBlank(row: number): boolean {
    return this.#lines[row]?.isBlank ?? true
  }

  /** Returns the rows that form one line with this row: their text reached the right margin. */
  span(row: number): Span {
    let first = row
    let last = row
    while (first > 0 && this.#flowsOn(first - 1)) first--
    while (last < this.rows - 1 && this.#flowsOn(last)) last++
    return { first, last }
  }

  /** Returns the text of these rows without breaks, up to cell `column` of `row` if `end` is given. */
  text({ first, last }: Span, end?: { row: number; column: number }): string {
    let text = ''
    const lowest = end?.row ?? last
    for (let row = first; row <= lowest; row++) {
      const line = this.#lines[row]
      let to = row === end?.row ? end.column : this.columns
      // A wide character that did not fit left the last cell empty.
      if (row < lowest && line?.isFull === false) to--
      text += line?.text(to) ?? ' '.repeat(to)
    }
    return text
  }

  /** Empties the rows from `first` up to but not including `end`. */
  clear(first = 0, end = this.rows): void {
    this.#lines.fill(undefined, first, end)
  }

  /** Moves the rows from `top` to `bottom` up by `by` rows, or down if it is negative. */
  scroll(top: number, bottom: number, by: number): void {
    const count = Math.min(Math.abs(by), bottom - top + 1)
    if (by > 0) {
      this.#lines.splice(bottom + 1, 0, ...blank(count))
      this.#lines.splice(top, count)
      if (top === 0) this.gone += count
    } else {
      this.#lines.splice(bottom + 1 - count, count)
      this.#lines.splice(top, 0, ...blank(count))
    }
  }

  /**
   * Resizes as xterm does: removes rows below the cursor's first, then rows at the top. Returns the number of
   * the latter.
   */
  protected reshape(columns: number, rows: number, cursorRow: number): number {
    const width = clamp(columns, 1, MAX_COLUMNS)
    const height = boundRows(width, rows)
    if (width !== this.columns) this.#lines = this.#lines.map((line) => line?.resized(width))
    const above = Math.max(0, cursorRow - (height - 1))
    this.#lines = Array.from({ length: height }, (_, row) => this.#lines[row + above])
    this.gone += above
    this.columns = width
    this.rows = height
    return above
  }

  #flowsOn(row: number): boolean {
    const line = this.#lines[row]
    return line?.continues === true && (line.isFull || !this.isBlank(row + 1))
  }
}

function boundRows(columns: number, rows: number): number {
  return clamp(rows, 1, Math.max(MAX_ROWS, Math.ceil(NARROW_CELLS / columns)))
}

function blank(count: number): (LineCells | undefined)[] {
  return new Array<LineCells | undefined>(count).fill(undefined)
}

export function clamp(value: number, low: number, high: number): number {
  return Math.max(low, Math.min(high, value))
}

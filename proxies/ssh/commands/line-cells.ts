/** One row of the screen: code points in cells, and their combining characters. */

/** Marks the second cell of a wide character. */
const TAIL = 0xffff_ffff
const SPACE = 0x20
/** UTF-16 units that combine with one character; more are dropped. */
const MAX_COMBINING = 8
/** Cells of a row that may have combining characters; those of further cells are dropped. */
const MAX_COMBINED = 64

export class LineCells {
  /** Set if the text reached the right margin and continues in the next row. */
  continues = false
  /** 0: never written, or erased. */
  readonly #cells: Uint32Array
  #combining: Map<number, string> | undefined

  constructor(columns: number) {
    this.#cells = new Uint32Array(columns)
  }

  /** Returns a copy with another width, cut or with empty cells at its end. */
  resized(columns: number): LineCells {
    const line = new LineCells(columns)
    line.#cells.set(this.#cells.subarray(0, columns))
    line.#combining = this.#combining
    return line
  }

  get isBlank(): boolean {
    return this.#cells.every((code) => code === 0 || code === SPACE)
  }

  /** Whether a character, with its second cell, reaches the right margin. */
  get isFull(): boolean {
    return this.#cells[this.#cells.length - 1] !== 0
  }

  put(column: number, code: number, width: number): void {
    const cells = this.#cells
    if (cells[column] === TAIL && column > 0) cells[column - 1] = SPACE
    if (cells[column + width] === TAIL) cells[column + width] = SPACE
    cells[column] = code
    if (width === 2) cells[column + 1] = TAIL
    this.#combining?.delete(column)
  }

  /** Adds a combining character to this cell, or to the wide character that ends in it. */
  combine(column: number, code: number): void {
    const at = this.#cells[column] === TAIL ? column - 1 : column
    this.#combining ??= new Map()
    const marks = (this.#combining.get(at) ?? '') + String.fromCodePoint(code)
    const fits = this.#combining.has(at) || this.#combining.size < MAX_COMBINED
    if (fits && marks.length <= MAX_COMBINING) this.#combining.set(at, marks)
  }

  erase(from: number, to: number): void {
    this.#cells.fill(0, from, to)
    if (this.#combining === undefined) return
    for (const at of this.#combining.keys()) if (from <= at && at < to) this.#combining.delete(at)
  }

  /** Shifts the cells from `column` on to the right; cells beyond the margin are lost. */
  insert(column: number, count: number): void {
    this.#cells.copyWithin(column + count, column)
    this.erase(column, Math.min(this.#cells.length, column + count))
  }

  remove(column: number, count: number): void {
    this.#cells.copyWithin(column, column + count)
    this.erase(Math.max(column, this.#cells.length - count), this.#cells.length)
  }

  /** Returns the characters from `begin` up to but not including `end`; empty cells are spaces. */
  text(end: number, begin = 0): string {
    let text = ''
    for (let at = begin; at < end; at++) {
      const code = this.#cells[at]!
      if (code === TAIL) continue
      text += code === 0 ? ' ' : String.fromCodePoint(code)
      if (this.#combining !== undefined) text += this.#combining.get(at) ?? ''
    }
    return text
  }
}

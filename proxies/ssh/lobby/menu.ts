/**
 * The menu of a user's targets on a terminal, for a login without a target: a numbered list, a search, a
 * choice. It turns typed bytes into text to show, and owns no socket.
 *
 * Names were checked when they were stored, but descriptions are an administrator's free text: characters
 * that are not printable are shown as `?`.
 */
import type { TargetEntry } from '../../../src/contract/gate.ts'
import { LineInput, printable } from '../../wording/line-input.ts'

/** The result of typed bytes. */
export type MenuStep = { show: string } | { show: string; choice: TargetEntry } | { show: string; quit: true }

const MAX_LINE = 256
/** A client may claim a terminal of four thousand million rows; the menu uses no more than this. */
const SMALLEST = { columns: 20, rows: 8 }
const LARGEST = { columns: 500, rows: 200 }

type Size = { columns: number; rows: number }

export class TargetMenu {
  readonly #all: readonly TargetEntry[]
  /** The searchable text of each target, from the first search on. */
  #texts: readonly string[] | undefined
  readonly #total: number
  #found: readonly TargetEntry[]
  #size: Size
  #top = 0
  readonly #input = new LineInput(MAX_LINE)
  /** Decodes typed bytes; a character's bytes may be split. */
  readonly #decoder = new TextDecoder()

  constructor(targets: readonly TargetEntry[], total: number, size: Size) {
    this.#all = targets
    this.#found = targets
    this.#total = total
    this.#size = bounded(size)
  }

  resize(size: Size): void {
    this.#size = bounded(size)
  }

  /** Returns the first screen. `notice`: why the menu is shown again. */
  start(notice?: string): string {
    this.#input.take()
    return `${notice === undefined ? '' : `${printable(notice)}\r\n\r\n`}${this.#page()}`
  }

  /** Each Return costs a search or a page; the caller must bound how many are typed at a time. */
  type(bytes: Uint8Array): MenuStep {
    let show = ''
    for (const character of this.#decoder.decode(bytes, { stream: true })) {
      const step = this.#key(character)
      show += step.show
      if ('choice' in step || 'quit' in step) return { ...step, show }
    }
    return { show }
  }

  #key(character: string): MenuStep {
    const { show, done } = this.#input.type(character)
    if (done === 'leave') return { show, quit: true }
    return done === 'end' ? this.#enter() : { show }
  }

  #enter(): MenuStep {
    const line = this.#input.take().trim()
    if (line === '') {
      this.#top = this.#top + this.#pageSize >= this.#found.length ? 0 : this.#top + this.#pageSize
      return { show: `\r\n${this.#page()}` }
    }
    if (line === 'q' || line === 'quit' || line === 'exit') return { show: '\r\n', quit: true }
    if (/^\d{1,6}$/.test(line)) {
      const choice = this.#found[Number(line) - 1]
      if (choice) return { show: '\r\n', choice }
      return { show: `\r\nThere is no number ${line} in the list.\r\n${this.#prompt()}` }
    }
    const words = line === '/' ? [] : [...new Set(line.replace(/^\//, '').toLowerCase().split(/\s+/))]
    this.#texts ??= this.#all.map(({ target, description }) => `${target} ${description}`.toLowerCase())
    const texts = this.#texts
    const found = this.#all.filter((_, index) => words.every((word) => texts[index]?.includes(word)))
    if (found.length === 0) {
      return { show: `\r\nNothing matches ${JSON.stringify(line)}.\r\n${this.#prompt()}` }
    }
    this.#found = found
    this.#top = 0
    return { show: `\r\n${this.#page()}` }
  }

  get #pageSize(): number {
    return this.#size.rows - 6
  }

  #page(): string {
    const { length } = this.#found
    const shown = this.#found.slice(this.#top, this.#top + this.#pageSize)
    const width = String(this.#top + shown.length).length
    const lines = shown.map((entry, index) => {
      const number = String(this.#top + index + 1).padStart(width)
      const description = entry.description === '' ? '' : `  ${entry.description}`
      return [...printable(` ${number}  ${entry.target}${description}`)]
        .slice(0, this.#size.columns - 1)
        .join('')
    })
    const filtered = length === this.#all.length ? '' : ` of ${this.#all.length}`
    const cut = this.#total > this.#all.length ? `, the first of ${this.#total}: ask for fewer rights` : ''
    const head = `Your targets (${this.#top + 1}-${this.#top + shown.length} of ${length}${filtered === '' ? '' : ` found,${filtered.replace(' of', '')} in all`}${cut})`
    return `${[head, '', ...lines, ''].join('\r\n')}\r\n${this.#prompt()}`
  }

  #prompt(): string {
    const more = this.#found.length > this.#pageSize ? ', Enter: next page' : ''
    return `A number, words to search for, / for all${more}, q to leave: `
  }
}

function bounded({ columns, rows }: Size): Size {
  return {
    columns: Math.min(Math.max(columns, SMALLEST.columns), LARGEST.columns),
    rows: Math.min(Math.max(rows, SMALLEST.rows), LARGEST.rows),
  }
}

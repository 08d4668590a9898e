/**
 * The menu of a user's targets in the terminal, for a login without a target: a numbered list, a search, a
 * choice. It takes what the user types and answers with what to show; it owns no socket.
 *
 * Names were checked when they were stored, descriptions are an administrator's free text: whatever is not
 * printable is shown as `?`.
 */
import type { TargetEntry } from '../../src/gate/messages.ts'

/** What the user typed comes to. */
export type MenuStep = { show: string } | { show: string; choice: TargetEntry } | { show: string; quit: true }

const MAX_LINE = 256
const CTRL_C = 0x03
const CTRL_D = 0x04
const BACKSPACE = 0x08
const CTRL_U = 0x15
const ESCAPE = 0x1b
const DELETE = 0x7f

export class TargetMenu {
  readonly #all: readonly TargetEntry[]
  readonly #total: number
  #found: readonly TargetEntry[]
  #rows: number
  #columns: number
  #top = 0
  #line = ''
  /** Inside an escape sequence of a cursor or function key, which the menu has no use for. */
  #escape: 'none' | 'begun' | 'sequence' = 'none'
  /** Decodes what is typed; a character's bytes may come apart. */
  readonly #decoder = new TextDecoder()
  #lastWasReturn = false

  constructor(targets: readonly TargetEntry[], total: number, size: { columns: number; rows: number }) {
    this.#all = targets
    this.#found = targets
    this.#total = total
    this.#columns = Math.max(20, size.columns)
    this.#rows = Math.max(8, size.rows)
  }

  resize(size: { columns: number; rows: number }): void {
    this.#columns = Math.max(20, size.columns)
    this.#rows = Math.max(8, size.rows)
  }

  /** The first screen; `notice` says why the menu is there again. */
  start(notice?: string): string {
    this.#line = ''
    return `${notice === undefined ? '' : `${printable(notice)}\r\n\r\n`}${this.#page()}`
  }

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
    const code = character.codePointAt(0) ?? 0
    if (this.#escape !== 'none') {
      if (this.#escape === 'begun')
        this.#escape = character === '[' || character === 'O' ? 'sequence' : 'none'
      else if (code >= 0x40 && code <= 0x7e) this.#escape = 'none'
      return { show: '' }
    }
    const afterReturn = this.#lastWasReturn
    this.#lastWasReturn = character === '\r'
    switch (code) {
      case 0x0a:
        return afterReturn ? { show: '' } : this.#enter()
      case 0x0d:
        return this.#enter()
      case CTRL_C:
        return { show: '^C\r\n', quit: true }
      case CTRL_D:
        return this.#line === '' ? { show: '\r\n', quit: true } : { show: '' }
      case CTRL_U: {
        const length = [...this.#line].length
        this.#line = ''
        return { show: '\b \b'.repeat(length) }
      }
      case BACKSPACE:
      case DELETE: {
        if (this.#line === '') return { show: '' }
        this.#line = [...this.#line].slice(0, -1).join('')
        return { show: '\b \b' }
      }
      case ESCAPE:
        this.#escape = 'begun'
        return { show: '' }
      default:
        if (printable(character) !== character || this.#line.length >= MAX_LINE) return { show: '' }
        this.#line += character
        return { show: character }
    }
  }

  #enter(): MenuStep {
    const line = this.#line.trim()
    this.#line = ''
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
    const words = line === '/' ? [] : line.replace(/^\//, '').toLowerCase().split(/\s+/)
    const found = this.#all.filter((entry) => {
      const text = `${entry.target} ${entry.description}`.toLowerCase()
      return words.every((word) => text.includes(word))
    })
    if (found.length === 0) {
      return { show: `\r\nNothing matches ${JSON.stringify(line)}.\r\n${this.#prompt()}` }
    }
    this.#found = found
    this.#top = 0
    return { show: `\r\n${this.#page()}` }
  }

  get #pageSize(): number {
    return this.#rows - 6
  }

  #page(): string {
    const { length } = this.#found
    const shown = this.#found.slice(this.#top, this.#top + this.#pageSize)
    const width = String(this.#top + shown.length).length
    const lines = shown.map((entry, index) => {
      const number = String(this.#top + index + 1).padStart(width)
      const description = entry.description === '' ? '' : `  ${entry.description}`
      return [...printable(` ${number}  ${entry.target}${description}`)].slice(0, this.#columns - 1).join('')
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

/** Control and format characters, and lone surrogates, become `?`. */
function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, '?')
}

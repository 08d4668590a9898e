/**
 * A line typed at one of the bastion's own terminal prompts: its editing keys, and the echo of each key. A
 * line without echo shows nothing.
 */

const CTRL_C = 0x03
const CTRL_D = 0x04
const BACKSPACE = 0x08
const CTRL_U = 0x15
const ESCAPE = 0x1b
const DELETE = 0x7f

/** `end`: Return; `leave`: Ctrl-C, or Ctrl-D on an empty line. */
export interface Key {
  show: string
  done?: 'end' | 'leave'
}

export class LineInput {
  readonly #maximum: number
  #line = ''
  /** The state within an escape sequence of a cursor or function key; a line ignores those keys. */
  #escape: 'none' | 'begun' | 'sequence' = 'none'
  #lastWasReturn = false

  /** `maximum`: UTF-16 units; input beyond it is dropped. */
  constructor(maximum: number) {
    this.#maximum = maximum
  }

  /** Returns the typed line, and begins an empty one. */
  take(): string {
    const line = this.#line
    this.#line = ''
    return line
  }

  /** Handles one character. */
  type(character: string, echo = true): Key {
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
        return afterReturn ? { show: '' } : { show: '', done: 'end' }
      case 0x0d:
        return { show: '', done: 'end' }
      case CTRL_C:
        return { show: '^C\r\n', done: 'leave' }
      case CTRL_D:
        return this.#line === '' ? { show: '\r\n', done: 'leave' } : { show: '' }
      case CTRL_U: {
        const { length } = [...this.take()]
        return { show: echo ? '\b \b'.repeat(length) : '' }
      }
      case BACKSPACE:
      case DELETE: {
        if (this.#line === '') return { show: '' }
        this.#line = withoutLast(this.#line)
        return { show: echo ? '\b \b' : '' }
      }
      case ESCAPE:
        this.#escape = 'begun'
        return { show: '' }
      default:
        if (printable(character) !== character || this.#line.length >= this.#maximum) return { show: '' }
        this.#line += character
        return { show: echo ? character : '' }
    }
  }
}

/**
 * Removes the last character without splitting the whole line: a pasted run of corrections would cost the
 * broker seconds.
 */
function withoutLast(line: string): string {
  const last = line.codePointAt(line.length - 2) ?? 0
  return line.slice(0, last > 0xffff ? -2 : -1)
}

/** Replaces control and format characters and lone surrogates by `?`. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu, '?')
}

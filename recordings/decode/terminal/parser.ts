/**
 * Splits a terminal's output into text, control characters, and escape sequences (ECMA-48, the states of a
 * DEC terminal as in Paul Williams's parser). Accepts decoded text in pieces cut anywhere. Strings (OSC, DCS,
 * SOS, PM, APC) are skipped: no reader of a recording uses them.
 */

export interface TerminalHandler {
  /** Characters without any control among them. */
  print(text: string): void
  /** A C0 control other than ESC, CAN and SUB. */
  control(code: number): void
  /** ESC, perhaps intermediates (0x20 to 0x2f), and the final character. */
  escape(intermediates: string, final: string): void
  /** CSI: private prefix (one of `<=>?` or empty), parameters as written, intermediates, final character. */
  csi(prefix: string, parameters: string, intermediates: string, final: string): void
}

type State = 'ground' | 'escape' | 'csi' | 'csiIgnore' | 'string' | 'stringEscape'

/** Limit of characters of a sequence's prefix, parameters and intermediates; a longer sequence is dropped. */
export const MAX_SEQUENCE_LENGTH = 128
/**
 * Limit of skipped characters of a string: a string without an end would otherwise hide the rest of the
 * recording.
 */
export const MAX_STRING_LENGTH = 64 * 1024

const CAN = 0x18
const SUB = 0x1a
const ESC = 0x1b
const DEL = 0x7f
const BEL = 0x07
const CSI_C1 = 0x9b
const ST_C1 = 0x9c
/** `P X ] ^ _` after ESC, and the equivalent C1 controls. */
const STRING_STARTERS = new Set(['P', 'X', ']', '^', '_'])
const STRING_STARTERS_C1 = new Set([0x90, 0x98, 0x9d, 0x9e, 0x9f])

export class TerminalParser {
  readonly #handler: TerminalHandler
  #state: State = 'ground'
  #sequence = ''
  #skipped = 0

  constructor(handler: TerminalHandler) {
    this.#handler = handler
  }

  /** True between sequences and strings, not within one. */
  get isBetweenSequences(): boolean {
    return this.#state === 'ground'
  }

  push(text: string): void {
    let printed = 0
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#state === 'ground' && isPrintable(code)) continue
      if (this.#state === 'ground' && at > printed) this.#handler.print(text.slice(printed, at))
      if (this.#take(code, text[at] ?? '')) printed = at + 1
      else printed = at
    }
    if (this.#state === 'ground' && text.length > printed) this.#handler.print(text.slice(printed))
  }

  /** Returns false if the character is to be printed after all. */
  #take(code: number, character: string): boolean {
    if (this.#state === 'string' || this.#state === 'stringEscape') return this.#takeInString(code, character)
    if (code === ESC) {
      this.#enter('escape')
    } else if (code === CAN || code === SUB) {
      this.#state = 'ground'
    } else if (code < 0x20) {
      this.#handler.control(code)
    } else if (code >= 0x80 && code < 0xa0) {
      this.#takeC1(code)
    } else if (code === DEL) {
      return true
    } else if (this.#state === 'escape') {
      this.#takeInEscape(code, character)
    } else if (this.#state === 'csi' || this.#state === 'csiIgnore') {
      return this.#takeInCsi(code, character)
    }
    return true
  }

  #enter(state: State): void {
    this.#state = state
    this.#sequence = ''
    this.#skipped = 0
  }

  #takeC1(code: number): void {
    if (code === CSI_C1) this.#enter('csi')
    else if (STRING_STARTERS_C1.has(code)) this.#enter('string')
    // IND, NEL, HTS, RI … are ESC and the letter 0x40 below.
    else {
      this.#state = 'ground'
      this.#handler.escape('', String.fromCharCode(code - 0x40))
    }
  }

  #takeInEscape(code: number, character: string): void {
    if (code >= 0x20 && code <= 0x2f) {
      this.#extend(character, 'ground')
    } else if (this.#sequence === '' && character === '[') {
      this.#enter('csi')
    } else if (this.#sequence === '' && STRING_STARTERS.has(character)) {
      this.#enter('string')
    } else {
      this.#state = 'ground'
      if (code <= 0x7e) this.#handler.escape(this.#sequence, character)
    }
  }

  #takeInCsi(code: number, character: string): boolean {
    if (code > 0x7e) {
      // No sequence contains such a character: terminals give up here, and print it.
      this.#state = 'ground'
      return false
    }
    if (code < 0x40) {
      if (this.#state === 'csi') this.#extend(character, 'csiIgnore')
      return true
    }
    const match = this.#state === 'csi' ? /^([<=>?]?)([0-9:;]*)([ -/]*)$/.exec(this.#sequence) : null
    this.#state = 'ground'
    if (match) this.#handler.csi(match[1] ?? '', match[2] ?? '', match[3] ?? '', character)
    return true
  }

  #extend(character: string, whenTooLong: State): void {
    if (this.#sequence.length < MAX_SEQUENCE_LENGTH) this.#sequence += character
    else this.#state = whenTooLong
  }

  #takeInString(code: number, character: string): boolean {
    this.#skipped++
    if (this.#state === 'stringEscape' && character !== '\\') {
      // ESC ends a string and begins a sequence, whatever follows.
      this.#enter('escape')
      return this.#take(code, character)
    }
    if (code === ESC) this.#state = 'stringEscape'
    else if (character === '\\' && this.#state === 'stringEscape') this.#state = 'ground'
    else if (code === ST_C1 || code === BEL || code === CAN || code === SUB) this.#state = 'ground'
    else if (this.#skipped >= MAX_STRING_LENGTH) this.#state = 'ground'
    return true
  }
}

function isPrintable(code: number): boolean {
  return code >= 0x20 && code !== DEL && (code < 0x80 || code >= 0xa0)
}

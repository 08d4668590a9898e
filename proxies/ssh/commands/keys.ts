/**
 * What a user's terminal sends, as keys: which bytes are text, which end a line, which edit it, and which are no
 * keys at all but the terminal's own answers (RFC 4254 6.5 knows no difference).
 */

export type Key =
  /** A byte of a character. */
  | 'text'
  /** Backspace. */
  | 'erase'
  /** Return, Enter, ^J, and readline's ^O. */
  | 'return'
  /** A line's end within a bracketed paste: it becomes part of the line. */
  | 'newline'
  /** ^C, ^\ and ^Z: the line is given up. */
  | 'interrupt'
  /** ^D: gives up an empty line, and edits one that is not. */
  | 'end'
  /** Anything else: arrows, completion, history, deletion of words. */
  | 'edit'
  /** No key: a part of a sequence, a mark, an answer of the terminal. */
  | 'none'

const ETX = 0x03
const EOT = 0x04
const BS = 0x08
const LF = 0x0a
const CR = 0x0d
const SI = 0x0f
const SUB = 0x1a
const ESC = 0x1b
const FS = 0x1c
const DEL = 0x7f
const BEL = 0x07
const CSI = 0x5b
const SS3 = 0x4f
/** OSC, DCS, APC, PM and SOS: answers to questions for colours, versions and the like. */
const STRINGS = [0x5d, 0x50, 0x5f, 0x5e, 0x58]
/**
 * Finals of CSI sequences that answer a question or report focus or a mouse: CPR, DA, focus in and out, DSR, window
 * reports, mouse (xterm's control sequences).
 */
const REPORTS = [0x52, 0x63, 0x49, 0x4f, 0x6e, 0x74, 0x4d, 0x6d, 0x79]
const TILDE = 0x7e
const PASTE_BEGINS = '200'
const PASTE_ENDS = '201'
const MAX_SEQUENCE = 64
/** Bytes of a string; none of a terminal's answers is longer, and what nobody ends must not swallow all keys. */
const MAX_STRING = 4096

type State = 'ground' | 'escape' | 'csi' | 'ss3' | 'string' | 'stringEscape'

export class KeyReader {
  #state: State = 'ground'
  #sequence = ''
  #skipped = 0
  #pasting = false

  /** A second one in the same state. */
  clone(): KeyReader {
    const copy = new KeyReader()
    copy.#state = this.#state
    copy.#sequence = this.#sequence
    copy.#skipped = this.#skipped
    copy.#pasting = this.#pasting
    return copy
  }

  /** The meaning of the next byte. `pastes`: the target has asked for the marks of bracketed paste. */
  read(byte: number, pastes: boolean): Key {
    if (!pastes) this.#pasting = false
    switch (this.#state) {
      case 'ground':
        return this.#readGround(byte)
      case 'escape':
        return this.#readEscape(byte)
      case 'csi':
        return this.#readCsi(byte, pastes)
      case 'ss3':
        this.#state = 'ground'
        return 'edit'
      case 'string':
      case 'stringEscape':
        return this.#readString(byte)
    }
  }

  #readGround(byte: number): Key {
    if (byte === ESC) {
      this.#enter('escape')
      return 'none'
    }
    if (byte === CR || byte === LF) return this.#pasting ? 'newline' : 'return'
    if (this.#pasting) return 'text'
    if (byte === SI) return 'return'
    if (byte === DEL || byte === BS) return 'erase'
    if (byte === ETX || byte === FS || byte === SUB) return 'interrupt'
    if (byte === EOT) return 'end'
    return byte < 0x20 ? 'edit' : 'text'
  }

  #readEscape(byte: number): Key {
    if (byte === CSI) this.#enter('csi')
    else if (byte === SS3) this.#enter('ss3')
    else if (STRINGS.includes(byte)) this.#enter('string')
    else if (byte !== ESC) {
      this.#state = 'ground'
      // Escape itself, then a key: the line's end must be seen, whatever an editor makes of the two.
      if (byte === CR || byte === LF) return 'return'
      return 'edit'
    }
    return 'none'
  }

  #readCsi(byte: number, pastes: boolean): Key {
    if (byte < 0x20 || byte > 0x7e) {
      this.#state = 'ground'
      return this.#readGround(byte)
    }
    if (byte < 0x40) {
      if (this.#sequence.length >= MAX_SEQUENCE) this.#state = 'ground'
      else this.#sequence += String.fromCharCode(byte)
      return 'none'
    }
    this.#state = 'ground'
    if (byte === TILDE && this.#sequence === PASTE_BEGINS) {
      this.#pasting = pastes
      return 'none'
    }
    if (byte === TILDE && this.#sequence === PASTE_ENDS) {
      this.#pasting = false
      return 'none'
    }
    return REPORTS.includes(byte) ? 'none' : 'edit'
  }

  #readString(byte: number): Key {
    this.#skipped++
    // A line's end is in no answer of a terminal: it is Return, and the string was none.
    if (byte === CR || byte === LF) {
      this.#state = 'ground'
      return 'return'
    }
    const ended = byte === BEL || this.#state === 'stringEscape' || this.#skipped >= MAX_STRING
    this.#state = ended ? 'ground' : byte === ESC ? 'stringEscape' : 'string'
    return 'none'
  }

  #enter(state: State): void {
    this.#state = state
    this.#sequence = ''
    this.#skipped = 0
  }
}

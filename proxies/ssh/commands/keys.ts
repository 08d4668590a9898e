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
  /** ^C: the line is given up. */
  | 'interrupt'
  /** ^\ and ^Z: a line editor keeps the line. */
  | 'suspend'
  /** ^D: gives up an empty line, and edits one that is not. */
  | 'end'
  /** Anything else: arrows, completion, history, deletion of words. */
  | 'edit'
  /** No key: a part of a sequence, a mark, an answer of the terminal. */
  | 'none'

/** What an 'edit' does to a line in the editors of shells, where it is the same in all of them. */
export type Edit =
  | 'left'
  | 'right'
  | 'home'
  | 'end'
  | 'delete'
  | 'kill line'
  | 'kill rest'
  | 'kill word'
  /** The line before, or after, in the history. */
  | 'up'
  | 'down'
  /** The text stays what it is. */
  | 'nothing'
  | 'unknown'

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
/** OSC, DCS and APC: answers to questions for colours, versions and the like. No terminal answers with PM or SOS. */
const STRINGS = [0x5d, 0x50, 0x5f]
/**
 * Finals of CSI sequences that answer a question or report focus or a mouse: CPR, DA, focus in and out, DSR, window
 * reports, mouse (xterm's control sequences).
 */
const REPORTS = [0x52, 0x63, 0x49, 0x4f, 0x6e, 0x74, 0x4d, 0x6d, 0x79]
/** Of what stands before the final: parameters alone, or those of DECRPM. Shells take what follows others for text. */
const REPORTED = /^[0-?]*$|^\?\d+;\d\$$/
const TILDE = 0x7e
const PASTE_BEGINS = '200'
const PASTE_ENDS = '201'
/** Behind ESC: a, A. */
const RUNS = [0x61, 0x41]
const MAX_SEQUENCE = 64
/** ^A ^B ^E ^F ^K ^L ^N ^P ^Q ^S ^U ^W. */
const CONTROLS: ReadonlyMap<number, Edit> = new Map([
  [0x01, 'home'],
  [0x02, 'left'],
  [0x05, 'end'],
  [0x06, 'right'],
  [0x0b, 'kill rest'],
  [0x0c, 'nothing'],
  [0x0e, 'down'],
  [0x10, 'up'],
  [0x11, 'nothing'],
  [0x13, 'nothing'],
  [0x15, 'kill line'],
  [0x17, 'kill word'],
])
/** By the final of CSI or SS3. */
const ARROWS: ReadonlyMap<number, Edit> = new Map([
  [0x41, 'up'],
  [0x42, 'down'],
  [0x43, 'right'],
  [0x44, 'left'],
  [0x46, 'end'],
  [0x48, 'home'],
])
/** By the number before a tilde. Insert, the function keys: what they are bound to is nobody's business but their user's. */
const NUMBERED: ReadonlyMap<string, Edit> = new Map([
  ['1', 'home'],
  ['7', 'home'],
  ['4', 'end'],
  ['8', 'end'],
  ['3', 'delete'],
])
/** Return, and ^J and ^M, as terminals tell them on request: `CSI 13 u`, `CSI 27;5;109 ~`. */
const RETURN_U = /^(?:13|57414|106;5|109;5)(?:[;:][\d;:]*)?$/
const RETURN_TILDE = /^27;\d+;(?:13|106|109)$/
/** Bytes of a string; none of a terminal's answers is longer, and what nobody ends must not swallow all keys. */
const MAX_STRING = 4096

type State = 'ground' | 'escape' | 'csi' | 'ss3' | 'string' | 'stringEscape'

export class KeyReader {
  #state: State = 'ground'
  #sequence = ''
  #skipped = 0
  #pasting = false
  #edit: Edit = 'unknown'
  #runs = false

  /** What the last key that was an 'edit' does. */
  get edit(): Edit {
    return this.#edit
  }

  /** The last key runs a line in some shells (zsh's accept-and-hold), and is nothing of the kind in others. */
  get runs(): boolean {
    return this.#runs
  }

  /** Within a string, of which a terminal's answer has no Return in it. */
  get isInString(): boolean {
    return this.#state === 'string' || this.#state === 'stringEscape'
  }

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
    this.#runs = false
    switch (this.#state) {
      case 'ground':
        return this.#readGround(byte)
      case 'escape':
        return this.#readEscape(byte)
      case 'csi':
        return this.#readCsi(byte, pastes)
      case 'ss3':
        this.#state = 'ground'
        // Enter of a keypad in application mode.
        return byte === 0x4d ? 'return' : this.#edits(ARROWS.get(byte))
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
    if (byte === ETX) return 'interrupt'
    if (byte === FS || byte === SUB) return 'suspend'
    if (byte === EOT) return 'end'
    return byte < 0x20 ? this.#edits(CONTROLS.get(byte)) : 'text'
  }

  #edits(edit: Edit = 'unknown'): 'edit' {
    this.#edit = edit
    return 'edit'
  }

  #readEscape(byte: number): Key {
    if (byte === CSI) this.#enter('csi')
    else if (byte === SS3) this.#enter('ss3')
    else if (STRINGS.includes(byte)) this.#enter('string')
    else if (byte !== ESC) {
      this.#state = 'ground'
      // Escape itself, then a key: the line's end must be seen, whatever an editor makes of the two.
      if (byte === CR || byte === LF) return 'return'
      this.#runs = RUNS.includes(byte)
      return this.#edits()
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
    if (byte === TILDE) {
      return RETURN_TILDE.test(this.#sequence) ? 'return' : this.#edits(NUMBERED.get(this.#sequence))
    }
    if (byte === 0x75 && RETURN_U.test(this.#sequence)) return 'return'
    if (REPORTS.includes(byte) && REPORTED.test(this.#sequence)) return 'none'
    return this.#edits(this.#sequence === '' ? ARROWS.get(byte) : undefined)
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

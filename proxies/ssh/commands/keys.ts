/**
 * Decodes a terminal's input into keys: bytes that are text, end a line or edit it, and bytes that are no
 * keys but the terminal's own replies (RFC 4254 6.5 does not distinguish them).
 */

export type Key =
  /** A byte of a character. */
  | 'text'
  /** Backspace. */
  | 'erase'
  /** Return, Enter, ^J, and readline's ^O. */
  | 'return'
  /** A line end within a bracketed paste: part of the line. */
  | 'newline'
  /** ^C: cancels the line. */
  | 'interrupt'
  /** ^\ and ^Z: a line editor keeps the line. */
  | 'suspend'
  /** ^D: ends the input on an empty line, else edits the line. */
  | 'end'
  /** All other keys: arrows, completion, history, deletion of words. */
  | 'edit'
  /** No key: part of a sequence, a paste mark, a terminal's reply. */
  | 'none'

/** The effect of an 'edit' key, where all line editors of shells agree. */
export type Edit =
  | 'left'
  | 'right'
  | 'home'
  | 'end'
  | 'delete'
  | 'kill line'
  | 'kill rest'
  | 'kill word'
  /** The previous or next line in the history. */
  | 'up'
  | 'down'
  /** The text does not change. */
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
/** OSC, DCS and APC: replies to queries for colours, versions and the like. PM and SOS are never replies. */
const STRINGS = [0x5d, 0x50, 0x5f]
/**
 * Final bytes of CSI sequences that reply to a query or report focus or a mouse: CPR, DA, focus in and out,
 * DSR, window reports, mouse (xterm's control sequences).
 */
const REPORTS = [0x52, 0x63, 0x49, 0x4f, 0x6e, 0x74, 0x4d, 0x6d, 0x79]
/**
 * Bytes allowed before the final byte of a report: parameters, or those of DECRPM. After other bytes, shells
 * read the rest as text.
 */
const REPORTED = /^[0-?]*$|^\?\d+;\d\$$/
const TILDE = 0x7e
const PASTE_BEGINS = '200'
const PASTE_ENDS = '201'
/** Keys after ESC that run a line: a, A. */
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
/** By the final byte of CSI or SS3. */
const ARROWS: ReadonlyMap<number, Edit> = new Map([
  [0x41, 'up'],
  [0x42, 'down'],
  [0x43, 'right'],
  [0x44, 'left'],
  [0x46, 'end'],
  [0x48, 'home'],
])
/** By the number before a tilde. Insert and the function keys have no fixed meaning. */
const NUMBERED: ReadonlyMap<string, Edit> = new Map([
  ['1', 'home'],
  ['7', 'home'],
  ['4', 'end'],
  ['8', 'end'],
  ['3', 'delete'],
])
/** Return, ^J and ^M in the forms that terminals send on request: `CSI 13 u`, `CSI 27;5;109 ~`. */
const RETURN_U = /^(?:13|57414|106;5|109;5)(?:[;:][\d;:]*)?$/
const RETURN_TILDE = /^27;\d+;(?:13|106|109)$/
/** Longest string in bytes: a terminal's replies are shorter, and an open string must not eat all keys. */
const MAX_STRING = 4096

type State = 'ground' | 'escape' | 'csi' | 'ss3' | 'string' | 'stringEscape'

export class KeyReader {
  #state: State = 'ground'
  #sequence = ''
  #skipped = 0
  #pasting = false
  #edit: Edit = 'unknown'
  #runs = false

  /** Effect of the last 'edit' key. */
  get edit(): Edit {
    return this.#edit
  }

  /** Whether the last key runs a line in some shells (zsh's accept-and-hold); in others it does not. */
  get runs(): boolean {
    return this.#runs
  }

  /** Whether the reader is within a string; a terminal's reply has no Return in it. */
  get isInString(): boolean {
    return this.#state === 'string' || this.#state === 'stringEscape'
  }

  /** Returns a second reader in the same state. */
  clone(): KeyReader {
    const copy = new KeyReader()
    copy.#state = this.#state
    copy.#sequence = this.#sequence
    copy.#skipped = this.#skipped
    copy.#pasting = this.#pasting
    return copy
  }

  /** Decodes the next byte. `pastes`: the target has switched on bracketed paste. */
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
      // Escape, then a key: report the line end, whatever an editor makes of the two.
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
    // No terminal's reply contains a line end: this is Return, and the string was no reply.
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

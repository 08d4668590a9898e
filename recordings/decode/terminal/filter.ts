/**
 * Filters a recording for the terminal of the viewer: text passes, and the sequences that colour it, move the
 * cursor, erase and scroll. It is a list of permitted sequences, so that unknown ones are dropped: titles,
 * clipboard, hyperlinks, reports and queries (whose answers would be typed into the auditor's shell),
 * printing, key and mouse modes.
 */
import { type TerminalHandler, TerminalParser } from './parser.ts'

/** BS, HT, LF, VT, FF, CR, SO, SI. BEL is left out: a recording can ring it all day. */
const CONTROLS: ReadonlySet<number> = new Set([0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f])
/** DECSC, DECRC, IND, NEL, RI. */
const ESCAPES: ReadonlySet<string> = new Set(['7', '8', 'D', 'E', 'M'])
/** Character sets: ASCII, UK, and the line drawing of text interfaces; to G0 and G1. */
const CHARACTER_SETS: ReadonlySet<string> = new Set(['(0', '(A', '(B', ')0', ')A', ')B'])
/** Final characters of sequences without prefix and intermediates, with their limit of parameters. */
const SEQUENCES: ReadonlyMap<string, number> = new Map([
  ...[...'ABCDEFGIJKLMPSTXZ@`abde'].map((final): [string, number] => [final, 1]),
  ...[...'Hfr'].map((final): [string, number] => [final, 2]),
  ['m', 32],
  ['s', 0],
  ['u', 0],
])
/**
 * Set and reset: insert mode; of the private ones wrap, cursor, and the alternate screen. Not origin mode
 * (6): it cannot be reset without moving the cursor.
 */
const MODES: ReadonlySet<string> = new Set(['4', '?7', '?25', '?47', '?1047', '?1048', '?1049'])
/** Digits of a parameter; fewer for REP, which writes as many characters as its parameter. */
const PARAMETER = /^\d{0,4}$/
const REPETITIONS = /^\d{0,3}$/
/** SGR also has sub-parameters: `4:3`, `38:2::10:20:30`. */
const SGR_PARAMETER = /^[\d:]{0,32}$/

/**
 * Resets the terminal after a recording: character set, colours, modes, main screen, and the scrolling
 * region, whose reset moves the cursor.
 */
export const TERMINAL_RESET = '\x1b(B\x0f\x1b[m\x1b[4l\x1b[?7h\x1b[?25h\x1b[?1047l\x1b7\x1b[r\x1b8'

/** Limit of rows of a terminal in memory. */
export const MAX_ROWS = 200

/** Permitted sequences beside the list above. */
export interface Passing {
  /** Intermediates and final character. */
  escapes: ReadonlySet<string>
  /** Final characters (with intermediates before them), with their limit of parameters. */
  sequences: ReadonlyMap<string, number>
  modes: ReadonlySet<string>
  /** Limit of lines that a sequence scrolls, inserts or deletes. */
  maxLines?: number
}

/** Scroll up and down, insert and delete lines: emulators do these line by line. */
const LINE_WISE = 'STLM'

const NOTHING_MORE: Passing = { escapes: new Set(), sequences: new Map(), modes: new Set() }

/**
 * For an emulator in memory, which has no user's settings: also permits reset, tab stops, origin mode, and
 * the alignment pattern.
 */
export const FOR_EMULATOR: Passing = {
  escapes: new Set(['c', 'H', '#8']),
  sequences: new Map([
    ['g', 1],
    ['!p', 0],
  ]),
  modes: new Set(['?6']),
  // The number of rows of a terminal in memory.
  maxLines: MAX_ROWS,
}

export class TerminalFilter implements TerminalHandler {
  readonly #parser = new TerminalParser(this)
  readonly #more: Passing
  #passed = ''

  constructor(more: Passing = NOTHING_MORE) {
    this.#more = more
  }

  /** True if `push` holds back no part of the text. */
  get isBetweenSequences(): boolean {
    return this.#parser.isBetweenSequences
  }

  /** Returns the part of `text` that may be shown. Sequences may be cut anywhere between calls. */
  push(text: string): string {
    this.#parser.push(text)
    const passed = this.#passed
    this.#passed = ''
    return passed
  }

  print(text: string): void {
    this.#passed += text
  }

  control(code: number): void {
    if (CONTROLS.has(code)) this.#passed += String.fromCharCode(code)
  }

  escape(intermediates: string, final: string): void {
    const passes = intermediates === '' ? ESCAPES.has(final) : CHARACTER_SETS.has(intermediates + final)
    if (passes || this.#more.escapes.has(intermediates + final))
      this.#passed += `\x1b${intermediates}${final}`
  }

  csi(prefix: string, parameters: string, intermediates: string, final: string): void {
    const list = parameters === '' ? [] : parameters.split(';')
    if (intermediates === '' && (final === 'h' || final === 'l')) {
      const modes = list.filter((mode) => MODES.has(prefix + mode) || this.#more.modes.has(prefix + mode))
      if (modes.length > 0) this.#passed += `\x1b[${prefix}${modes.join(';')}${final}`
      return
    }
    const known = intermediates === '' ? SEQUENCES.get(final) : undefined
    const most = prefix === '' ? (known ?? this.#more.sequences.get(intermediates + final)) : undefined
    if (most === undefined || list.length > most) return
    const pattern = final === 'm' ? SGR_PARAMETER : final === 'b' ? REPETITIONS : PARAMETER
    if (list.every((parameter) => pattern.test(parameter))) {
      const { maxLines } = this.#more
      const isCut = maxLines !== undefined && LINE_WISE.includes(final) && Number(parameters) > maxLines
      this.#passed += `\x1b[${isCut ? maxLines : parameters}${intermediates}${final}`
    }
  }
}

/**
 * Escapes a recording's text for a line of a listing: control characters, and characters that reverse the
 * text.
 */
export function harmless(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}

/**
 * Internals of xterm.js that a snapshot needs and its interface does not show. This is the only file that
 * uses them: test/recordings/decode/terminal/emulator.test.ts checks them, and with them the version in
 * package.json.
 */
import type { Terminal } from '@xterm/headless'
import type { Attributes } from './attributes.ts'

/** A character set is a table of replaced characters; ASCII has none. */
export type Charset = Readonly<Record<string, string>> | undefined

export interface InnerBuffer {
  x: number
  y: number
  savedX: number
  savedY: number
  savedCurAttrData: Attributes
  savedCharset: Charset
  scrollTop: number
  scrollBottom: number
  /** Columns that have a tab stop. */
  tabs: Readonly<Record<string, boolean>>
}

interface Inner {
  _core: {
    _inputHandler: { _curAttrData: Attributes; _parser: { precedingJoinState: number } }
    _charsetService: { glevel: number; charset: Charset; _charsets: readonly Charset[] }
    coreService: { isCursorHidden: boolean }
    buffers: { active: InnerBuffer; normal: InnerBuffer; alt: InnerBuffer }
  }
}

export interface Internals {
  attributes: Attributes
  charsets: readonly Charset[]
  /** The selected character set, and the set in use. */
  shift: number
  charset: Charset
  isCursorHidden: boolean
  /** Set if REP would repeat the last printed character. */
  hasJustPrinted: boolean
  active: InnerBuffer
  normal: InnerBuffer
  alternate: InnerBuffer
}

export function internalsOf(terminal: Terminal): Internals {
  const { _core: core } = terminal as unknown as Inner
  return {
    attributes: core._inputHandler._curAttrData,
    charsets: core._charsetService._charsets,
    charset: core._charsetService.charset,
    shift: core._charsetService.glevel,
    isCursorHidden: core.coreService.isCursorHidden,
    hasJustPrinted: core._inputHandler._parser.precedingJoinState !== 0,
    active: core.buffers.active,
    normal: core.buffers.normal,
    alternate: core.buffers.alt,
  }
}

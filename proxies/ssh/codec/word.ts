/**
 * Words of a command line as a POSIX shell would read them, over exact bytes, and only where every shell reads
 * them alike: plain bytes, '…' and a backslash before a printable character. Anything that a shell could give
 * a meaning of its own (substitution, operators, double quotes, control bytes) is no word.
 */

export interface Word {
  /** What the program would get as argument, unless `expands`. */
  value: Uint8Array
  /** The bytes as they stand in the command line. */
  source: Uint8Array
  /** An unquoted glob character or a leading `~`: the shell would replace the word. */
  expands: boolean
}

const QUOTE = 0x27
const BACKSLASH = 0x5c
const SPACE = 0x20
const TILDE = 0x7e

/** Bytes that need no quotes in any shell. Bytes over 0x7f are parts of UTF-8 characters. */
const PLAIN = byteSet('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:=@%-')
const GLOB = byteSet('*?[]')

function byteSet(characters: string): ReadonlySet<number> {
  return new Set([...characters].map((character) => character.charCodeAt(0)))
}

/**
 * The words of `line` from `offset`, separated by single spaces; undefined when anything in it is no word. A
 * word that expands has plain ASCII bytes beside its glob characters and nothing quoted.
 */
export function words(line: Uint8Array, offset = 0): Word[] | undefined {
  const found: Word[] = []
  let at = offset
  while (true) {
    const next = readWord(line, at)
    if (next === undefined) return undefined
    found.push(next.word)
    if (next.end === line.length) return found
    at = next.end + 1
  }
}

/** One word that begins at `begin` and ends before a space or at the end. */
function readWord(line: Uint8Array, begin: number): { word: Word; end: number } | undefined {
  const value: number[] = []
  let expands = false
  let onlyPlain = true
  let at = begin
  while (at < line.length && line[at] !== SPACE) {
    const byte = line[at]!
    if (byte === QUOTE) {
      const close = line.indexOf(QUOTE, at + 1)
      if (close === -1) return undefined
      const quoted = line.subarray(at + 1, close)
      if (quoted.some(isControl)) return undefined
      for (const inside of quoted) value.push(inside)
      onlyPlain = false
      at = close + 1
      continue
    }
    if (byte === BACKSLASH) {
      const escaped = line[at + 1]
      if (escaped === undefined || isControl(escaped) || 0x7e < escaped) return undefined
      value.push(escaped)
      onlyPlain = false
      at += 2
      continue
    }
    if (GLOB.has(byte) || (byte === TILDE && at === begin)) expands = true
    else if (0x7f < byte) onlyPlain = false
    else if (!PLAIN.has(byte) && byte !== TILDE) return undefined
    value.push(byte)
    at++
  }
  if (at === begin || (expands && !onlyPlain)) return undefined
  return { word: { value: Uint8Array.from(value), source: line.subarray(begin, at), expands }, end: at }
}

function isControl(byte: number): boolean {
  return byte < 0x20 || byte === 0x7f
}

/** `'…'`, with `'` as `'\''`: one word for every POSIX shell, whatever the bytes. */
export function quoted(value: Uint8Array): Uint8Array {
  const result = [QUOTE]
  for (const byte of value) {
    if (byte === QUOTE) result.push(QUOTE, BACKSLASH, QUOTE, QUOTE)
    else result.push(byte)
  }
  result.push(QUOTE)
  return Uint8Array.from(result)
}

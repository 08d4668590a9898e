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
const DOUBLE_QUOTE = 0x22
const DASH = 0x2d
const SLASH = 0x2f

/** Bytes that need no quotes in any shell. Bytes over 0x7f are parts of UTF-8 characters. */
const PLAIN = byteSet('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./+,:=@%-')
const GLOB = byteSet('*?[]')
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:+-'
/** What no shell makes anything of (`portable`), in a word that does not begin with `-`; and what none does in quotes. */
const BARE = byteSet(LETTERS)
const WITHIN_QUOTES = byteSet(`${LETTERS} ,=@~`)

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

/**
 * A word as every shell reads it alike: sh, bash, zsh, fish, csh, tcsh, rc, cmd.exe and PowerShell, whatever they take
 * for a quote, an escape, a history or a variable. undefined: there is no such form. `globs`: it may be left to the
 * shell to expand; what comes of that is names and nothing else, and no shell reads them again.
 *
 * Only double quotes are known to nearly all (fish has escapes within single ones, cmd.exe has none of them), and only
 * ASCII has one reading (PowerShell takes U+2019 for a quote, an old csh strips the eighth bit). rc knows other quotes
 * only, so that what is between these has to be harmless without them: it may fall apart at a blank, not into options.
 */
export function portable({ value, source, expands }: Word, globs: boolean): Uint8Array | undefined {
  if (expands) {
    const rest = source[0] === TILDE ? source.subarray(1) : source
    if (rest !== source && rest.length > 0 && rest[0] !== SLASH) return undefined
    return rest.every((byte) => BARE.has(byte) || (globs && GLOB.has(byte))) ? source : undefined
  }
  if (value[0] !== DASH && value.every((byte) => BARE.has(byte))) return value
  if (
    !value.every((byte, index) => WITHIN_QUOTES.has(byte) && !(byte === DASH && value[index - 1] === SPACE))
  )
    return undefined
  return Uint8Array.of(DOUBLE_QUOTE, ...value, DOUBLE_QUOTE)
}

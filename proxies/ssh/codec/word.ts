/**
 * Splits a command line into words, by exact bytes, and only where every POSIX shell reads the words alike:
 * plain bytes, '…' and a backslash before a printable character. Anything with a special meaning to a shell
 * (substitution, operators, double quotes, control bytes) is no word.
 */

export interface Word {
  /** The argument that the program would receive, unless `expands`. */
  value: Uint8Array
  /** The bytes of the command line. */
  source: Uint8Array
  /** Set if the word has an unquoted glob character or a leading `~`: the shell would replace it. */
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
/** Bytes that no shell interprets: bare, in a word that does not begin with `-`, and in quotes. */
const BARE = byteSet(LETTERS)
const WITHIN_QUOTES = byteSet(`${LETTERS} ,=@~`)

function byteSet(characters: string): ReadonlySet<number> {
  return new Set([...characters].map((character) => character.charCodeAt(0)))
}

/**
 * Returns the words of `line` from `offset`, separated by single spaces, or undefined if any part is no word.
 * A word that expands has plain ASCII bytes besides its glob characters, and no quotes.
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

/** Reads one word from `begin` up to a space or the end. */
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
 * Returns a form of a word that every shell reads alike: sh, bash, zsh, fish, csh, tcsh, rc, cmd.exe and
 * PowerShell, with their different quotes, escapes, histories and variables. Returns undefined if there is no
 * such form. `globs` allows globs, which the shell expands to names only, and does not read again.
 *
 * Nearly all shells know double quotes (fish has escapes within single quotes, cmd.exe does not know them),
 * and only ASCII has one reading (PowerShell reads U+2019 as a quote, an old csh strips the eighth bit). rc
 * knows single quotes only, so the quoted text must be harmless without quotes: it may split at a blank, but
 * not into options.
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

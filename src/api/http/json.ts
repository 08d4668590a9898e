/**
 * Restrictions beyond JSON's grammar: an object with a repeated key means different things to different
 * readers (RFC 8259 4), and nesting must have a limit.
 */

/** Limit of nested objects and arrays. */
export const MAX_DEPTH = 32

/** Returns what is wrong with a text that JSON.parse accepts, or undefined if nothing is. */
export function jsonFlaw(text: string): string | undefined {
  /** Keys of the open objects; undefined for an array. */
  const open: (Set<string> | undefined)[] = []
  let isKey = false
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case '"': {
        const end = endOfString(text, at)
        const keys = open.at(-1)
        if (isKey && keys) {
          const key = keyAt(text, at, end)
          if (keys.has(key)) return `the key ${JSON.stringify(key.slice(0, 100))} stands twice in one object`
          keys.add(key)
          isKey = false
        }
        at = end
        break
      }
      case '{':
      case '[':
        isKey = text[at] === '{'
        open.push(isKey ? new Set() : undefined)
        if (open.length > MAX_DEPTH) return `objects and arrays are nested deeper than ${MAX_DEPTH}`
        break
      case '}':
      case ']':
        open.pop()
        isKey = false
        break
      case ',':
        isKey = open.at(-1) !== undefined
        break
    }
  }
  return undefined
}

/** Returns the offset of the closing quote. */
function endOfString(text: string, begin: number): number {
  for (let end = text.indexOf('"', begin + 1); end > 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text[end - 1 - backslashes] === '\\') backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Decodes the key: `"a"` and `"\u0061"` are the same. */
function keyAt(text: string, begin: number, end: number): string {
  const raw = text.slice(begin + 1, end)
  return raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
}

/**
 * Paths and the patterns that match them: `*` matches any characters within a segment, a segment `**` any
 * number of segments, even none. Segments are compared in Unicode NFC: some targets accept both forms of a
 * letter for the same name.
 */

/** The segments of an absolute path; the root has none. */
export type Path = readonly string[]

/** The literal texts between the `*` of a segment. */
type Segment = readonly string[]
const ANY_SEGMENTS = '**'
export type PathPattern = readonly (Segment | typeof ANY_SEGMENTS)[]

export interface PatternFault {
  at: number
  expected: string
  found: string
}

/** Splits one segment at its stars, and removes each `\` before the character that it escapes. */
function segmentOf(source: string, at: number): Segment | PatternFault {
  const parts = ['']
  for (let index = 0; index < source.length; index++) {
    const character = source[index]!
    if (character === '*') parts.push('')
    else if (character !== '\\') parts[parts.length - 1] += character
    else {
      const kept = source[++index]
      if (kept === undefined || !' *\\'.includes(kept)) {
        const found = kept === undefined ? 'the end' : JSON.stringify(kept)
        return { at: at + index, expected: 'a space, "*" or "\\" after "\\"', found }
      }
      parts[parts.length - 1] += kept
    }
  }
  return parts.map((part) => part.normalize('NFC'))
}

/** Parses a rule's absolute pattern. */
export function parsePattern(text: string): PathPattern | PatternFault {
  if (!text.startsWith('/'))
    return { at: 0, expected: 'an absolute path that begins with "/"', found: JSON.stringify(text) }
  const control = text.search(/[\p{Cc}\p{Cs}]/u)
  if (control !== -1) return { at: control, expected: 'a printable character', found: 'a control character' }
  if (text === '/') return []
  const pattern: (Segment | typeof ANY_SEGMENTS)[] = []
  let at = 1
  for (const source of text.slice(1).split('/')) {
    const fault = faultOf(source)
    if (fault !== undefined) return { at, ...fault }
    if (source === ANY_SEGMENTS) pattern.push(ANY_SEGMENTS)
    else {
      const segment = segmentOf(source, at)
      if ('expected' in segment) return segment
      pattern.push(segment)
    }
    at += source.length + 1
  }
  return pattern
}

function faultOf(source: string): { expected: string; found: string } | undefined {
  if (source === '') return { expected: 'a name between two "/"', found: 'none' }
  if (source === '.' || source === '..')
    return { expected: 'a name that stands for itself', found: JSON.stringify(source) }
  if (source !== ANY_SEGMENTS && /(?<!\\)(\\\\)*\*\*/u.test(source))
    return { expected: '"**" alone between two "/"', found: JSON.stringify(source) }
  return undefined
}

/**
 * Returns the path that a text names, with `.`, `..` and `//` resolved. A relative path starts at `folder`.
 */
export function pathOf(text: string, folder: Path = []): Path {
  const path = text.startsWith('/') ? [] : [...folder]
  for (const name of text.split('/')) {
    if (name === '..') path.pop()
    else if (name !== '' && name !== '.') path.push(name.normalize('NFC'))
  }
  return path
}

export function textOf(path: Path): string {
  return `/${path.join('/')}`
}

function matchesSegment(segment: Segment, name: string): boolean {
  const first = segment[0]!
  if (segment.length === 1) return name === first
  const last = segment.at(-1)!
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last))
    return false
  const end = name.length - last.length
  let at = first.length
  for (const part of segment.slice(1, -1)) {
    const found = name.indexOf(part, at)
    if (found === -1 || end < found + part.length) return false
    at = found + part.length
  }
  return true
}

/**
 * Returns the positions in the pattern that are possible after the whole path: the index of the next segment,
 * or the length for the end. A position on `**` includes the one behind it.
 */
function placesAfter(pattern: PathPattern, path: Path): Set<number> {
  let places = withSkips(pattern, [0])
  for (const name of path) {
    const next: number[] = []
    for (const place of places) {
      const segment = pattern[place]
      if (segment === undefined) continue
      if (segment === ANY_SEGMENTS) next.push(place)
      else if (matchesSegment(segment, name)) next.push(place + 1)
    }
    if (next.length === 0) return new Set()
    places = withSkips(pattern, next)
  }
  return places
}

function withSkips(pattern: PathPattern, places: readonly number[]): Set<number> {
  const all = new Set<number>()
  for (let place of places) {
    all.add(place)
    while (pattern[place] === ANY_SEGMENTS) all.add(++place)
  }
  return all
}

export function matches(pattern: PathPattern, path: Path): boolean {
  return placesAfter(pattern, path).has(pattern.length)
}

/** Whether a path below this one may match. */
export function mayMatchBelow(pattern: PathPattern, path: Path): boolean {
  for (const place of placesAfter(pattern, path)) if (place < pattern.length) return true
  return false
}

/** Whether every path below this one matches. */
export function matchesAllBelow(pattern: PathPattern, path: Path): boolean {
  return pattern.at(-1) === ANY_SEGMENTS && placesAfter(pattern, path).has(pattern.length - 1)
}

/** Whether every path matches. */
export function matchesEverything(pattern: PathPattern): boolean {
  return matchesAllBelow(pattern, [])
}

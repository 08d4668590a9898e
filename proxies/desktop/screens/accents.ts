/** Dead keys: the characters that they produce with the next key. */

/** The combining marks of dead keys, in the order of X11's keysyms from 0xfe50. */
export const MARKS = '\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328'
/** The same marks as characters of their own. */
const ALONE = '`´^~¯˘˙¨˚˝ˇ¸˛'

/** Returns a mark as a character of its own. */
export function aloneOf(mark: string): string {
  return ALONE[MARKS.indexOf(mark)] ?? ''
}

/** Returns the mark for a character of ALONE, or undefined if it is none. */
export function markNamed(alone: string): string | undefined {
  return MARKS[ALONE.indexOf(alone)]
}

/**
 * Returns the letter with the mark; with a space the mark alone; if no such character exists, both in turn.
 */
export function marked(mark: string, text: string): string {
  if (text === ' ') return aloneOf(mark)
  const composed = (text + mark).normalize('NFC')
  return [...composed].length === 1 ? composed : aloneOf(mark) + text
}

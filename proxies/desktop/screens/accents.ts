/** Dead keys: what they and the key after them write. */

/** Combining marks that dead keys have, in the order of X11's keysyms from 0xfe50 on. */
export const MARKS = '\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327\u0328'
/** The same as characters by themselves. */
const ALONE = '`´^~¯˘˙¨˚˝ˇ¸˛'

/** A mark by itself. */
export function aloneOf(mark: string): string {
  return ALONE[MARKS.indexOf(mark)] ?? ''
}

/** The mark that this character is by itself; undefined: it is none. */
export function markNamed(alone: string): string | undefined {
  return MARKS[ALONE.indexOf(alone)]
}

/** The letter with the mark; with a space the mark alone; where no such character is, one after the other. */
export function marked(mark: string, text: string): string {
  if (text === ' ') return aloneOf(mark)
  const composed = (text + mark).normalize('NFC')
  return [...composed].length === 1 ? composed : aloneOf(mark) + text
}

/** Cells of a character on a terminal: 0 if it combines, 2 for East Asian wide and emoji, else 1. */

const COMBINES = /^[\p{Mn}\p{Me}\p{Cf}]$/u
const EMOJI = /^\p{Emoji_Presentation}$/u

/** Blocks of wide characters (Unicode Standard Annex #11), as first and last code point. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97c],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x17000, 0x18cff],
  [0x1b000, 0x1b2ff],
  [0x20000, 0x3fffd],
]
const FIRST_COMBINING = 0x300
const FIRST_WIDE = 0x1100
const SOFT_HYPHEN = 0xad

/** `code`: a code point other than a control character. */
export function widthOf(code: number): 0 | 1 | 2 {
  if (code < FIRST_COMBINING || code === SOFT_HYPHEN) return 1
  const character = String.fromCodePoint(code)
  if (COMBINES.test(character)) return 0
  if (code < FIRST_WIDE) return 1
  return WIDE.some(([first, last]) => first <= code && code <= last) || EMOJI.test(character) ? 2 : 1
}

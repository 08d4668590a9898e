/** Maps keysyms (X11's keysymdef.h, which RFC 6143 section 7.5.4 refers to) to text and keys. */
import { MARKS } from '../../desktop/screens/accents.ts'
import type { KeyPress, NamedKey } from '../../desktop/screens/screen.ts'

/** The named keys, those of the keypad included. */
const NAMED: Readonly<Record<number, NamedKey>> = {
  65288: 'Backspace',
  65289: 'Tab',
  65417: 'Tab',
  65293: 'Enter',
  65421: 'Enter',
  65307: 'Escape',
  65535: 'Delete',
  65439: 'Delete',
  65360: 'Home',
  65429: 'Home',
  65361: 'Left',
  65430: 'Left',
  65362: 'Up',
  65431: 'Up',
  65363: 'Right',
  65432: 'Right',
  65364: 'Down',
  65433: 'Down',
  65365: 'PageUp',
  65434: 'PageUp',
  65366: 'PageDown',
  65435: 'PageDown',
  65367: 'End',
  65436: 'End',
}
/** Shift+Tab on X11. */
const LEFT_TAB = 0xfe20

/** The keypad's characters, from 0xff80 and 0xffaa on. */
const KEYPAD_SPACE = 0xff80
const KEYPAD_FROM = 0xffaa
const KEYPAD = '*+,-./0123456789'
const KEYPAD_EQUAL = 0xffbd

/** Added to a code point, makes a keysym. */
const UNICODE = 0x01000000
const LAST_CODE_POINT = 0x10ffff

/**
 * A keysym's upper byte selects a table, its lower byte an index: most tables are historical character sets.
 */
const TABLES: Readonly<Record<number, string>> = {
  1: 'iso-8859-2',
  2: 'iso-8859-3',
  3: 'iso-8859-4',
  5: 'iso-8859-6',
  6: 'koi8-u',
  7: 'iso-8859-7',
  12: 'iso-8859-8',
  13: 'windows-874',
  19: 'iso-8859-15',
}
/** Greek letters whose keysyms differ from ISO 8859-7: the accented ones, and sigma. */
const GREEK: Readonly<Record<number, string>> = Object.fromEntries([
  ...[...'ΆΈΉΊΪ'].map((letter, index) => [0x7a1 + index, letter]),
  ...Object.entries({ 1959: 'Ό', 1960: 'Ύ', 1961: 'Ϋ', 1963: 'Ώ', 1966: '΅', 1967: '―' }),
  ...[...'άέήίϊΐόύϋΰώ'].map((letter, index) => [0x7b1 + index, letter]),
  ...Object.entries({ 2002: 'Σ', 2034: 'σ', 2035: 'ς' }),
])
/** Cyrillic letters beyond Russian: Serbian, Macedonian, Ukrainian, Belarusian; the capital is 16 further. */
const CYRILLIC = 'ђѓёєѕіїјљњћќґўџ'
const NUMERO = 0x6b0
const FIRST_RUSSIAN = 0x6c0
const EURO = 0x20ac

/** The first dead key, in the order of MARKS. */
const DEAD_FROM = 0xfe50

/** Returns the text of the keysym, or undefined if it has none. */
function textOf(keysym: number): string | undefined {
  if ((keysym >= 0x20 && keysym <= 0x7e) || (keysym >= 0xa0 && keysym <= 0xff)) {
    return String.fromCharCode(keysym)
  }
  if (keysym === KEYPAD_SPACE) return ' '
  if (keysym === KEYPAD_EQUAL) return '='
  const keypad = KEYPAD[keysym - KEYPAD_FROM]
  if (keypad !== undefined) return keypad
  if (keysym > UNICODE && keysym <= UNICODE + LAST_CODE_POINT) return String.fromCodePoint(keysym - UNICODE)
  return tabled(keysym)
}

function tabled(keysym: number): string | undefined {
  if (keysym === EURO) return '€'
  if (keysym === NUMERO) return '№'
  if (GREEK[keysym] !== undefined) return GREEK[keysym]
  if (keysym >= 0x6a1 && keysym <= 0x6af) return CYRILLIC[keysym - 0x6a1]
  if (keysym >= 0x6b1 && keysym <= 0x6bf) return CYRILLIC[keysym - 0x6b1]?.toUpperCase()
  const table = TABLES[keysym >> 8]
  const low = keysym & 0xff
  if (table === undefined || low < 0xa0 || (keysym >> 8 === 0x06 && keysym < FIRST_RUSSIAN)) return undefined
  const text = new TextDecoder(table).decode(Uint8Array.of(low))
  return text === '\ufffd' ? undefined : text
}

/** Returns a dead key's mark, which combines with the next letter, or undefined if it is no dead key. */
export function markOf(keysym: number): string | undefined {
  return MARKS[keysym - DEAD_FROM]
}

/** Returns the key press, or undefined if the bastion's screens do not use the key. */
export function pressOf(keysym: number, shift: boolean): KeyPress | undefined {
  if (keysym === LEFT_TAB) return { key: 'Tab', shift: true }
  const key = NAMED[keysym]
  if (key !== undefined) return { key, shift }
  const text = textOf(keysym)
  return text === undefined ? undefined : { text }
}

/**
 * Keyboard layouts, key by key, as in Windows: clients send the positions of keys (scancodes of PC set 1),
 * and the user's layout (CS_CORE, keyboardLayout).
 */
import { markNamed } from '../../desktop/screens/accents.ts'

/** The text of a key, or a dead key's mark. */
export type Written = { text: string } | { mark: string }

export interface Layout {
  /** Name for users. */
  name: string
  plain: ReadonlyMap<number, Written>
  shift: ReadonlyMap<number, Written>
  altGr: ReadonlyMap<number, Written>
  shiftAltGr: ReadonlyMap<number, Written>
  /** Caps lock acts as shift for this key. */
  isShiftedByCaps(code: number): boolean
  /** Text of the keypad's decimal key. */
  decimal: string
}

/** The rows of keys with text: digits, then three rows of letters. 0x56 is the key that US keyboards lack. */
const ROWS: readonly (readonly number[])[] = [
  [0x29, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d],
  [0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b],
  [0x1e, 0x1f, 0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28, 0x2b],
  [0x56, 0x2c, 0x2d, 0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35],
]
const SPACE = 0x39

interface Source {
  name: string
  /** One string per row; a blank stands for no text. */
  plain: readonly string[]
  shift: readonly string[]
  altGr?: readonly string[]
  shiftAltGr?: readonly string[]
  /** Characters of `plain` and `shift` that are dead keys. */
  dead?: string
  /** Characters of `altGr` that are dead keys. */
  deadAltGr?: string
  /** Keys that caps lock does not shift. If absent, caps lock shifts letters only. */
  withoutCaps?: readonly number[]
  decimal?: string
}

const US: Source = {
  name: 'US',
  plain: ['`1234567890-=', 'qwertyuiop[]', "asdfghjkl;'\\", '\\zxcvbnm,./'],
  shift: ['~!@#$%^&*()_+', 'QWERTYUIOP{}', 'ASDFGHJKL:"|', '|ZXCVBNM<>?'],
}

const UK: Source = {
  name: 'UK',
  plain: ['`1234567890-=', 'qwertyuiop[]', "asdfghjkl;'#", '\\zxcvbnm,./'],
  shift: ['¬!"£$%^&*()_+', 'QWERTYUIOP{}', 'ASDFGHJKL:@~', '|ZXCVBNM<>?'],
  altGr: ['¦   €', '  é   úíó', 'á'],
  shiftAltGr: ['', '  É   ÚÍÓ', 'Á'],
}

const FRENCH: Source = {
  name: 'French',
  plain: ['²&é"\'(-è_çà)=', 'azertyuiop^$', 'qsdfghjklmù*', '<wxcvbn,;:!'],
  shift: [' 1234567890°+', 'AZERTYUIOP¨£', 'QSDFGHJKLM%µ', '>WXCVBN?./§'],
  altGr: ['  ~#{[|`\\^@]}', '  €        ¤'],
  dead: '^¨',
  deadAltGr: '~`',
  withoutCaps: [0x29, 0x56],
}

const GERMAN: Source = {
  name: 'German',
  plain: ['^1234567890ß´', 'qwertzuiopü+', 'asdfghjklöä#', '<yxcvbnm,.-'],
  shift: ['°!"§$%&/()=?`', 'QWERTZUIOPÜ*', "ASDFGHJKLÖÄ'", '>YXCVBNM;:_'],
  altGr: ['  ²³   {[]}\\', '@ €        ~', '', '|      µ'],
  shiftAltGr: ['           ẞ'],
  dead: '^´`',
  withoutCaps: [0x29, 0x0d, 0x56],
  decimal: ',',
}

const SPANISH: Source = {
  name: 'Spanish',
  plain: ["º1234567890'¡", 'qwertyuiop`+', 'asdfghjklñ´ç', '<zxcvbnm,.-'],
  shift: ['ª!"·$%&/()=?¿', 'QWERTYUIOP^*', 'ASDFGHJKLÑ¨Ç', '>ZXCVBNM;:_'],
  altGr: ['\\|@#~€¬', '  €       []', '          {}'],
  dead: '`^´¨',
  deadAltGr: '~',
}

/** By Windows' language and country id. Ireland has the UK's keys, Austria and Luxembourg Germany's. */
const LAYOUTS: Readonly<Record<number, Source>> = {
  1033: US,
  2057: UK,
  6153: UK,
  1036: FRENCH,
  1031: GERMAN,
  3079: GERMAN,
  4103: GERMAN,
  1034: SPANISH,
  3082: SPANISH,
}

const UNKNOWN: Source = { ...US, name: 'US, as yours is not known here' }
const built = new Map<Source, Layout>()

/** Finds the layout by keyboardLayout of CS_CORE, whose lower half is the language. Default: US. */
export function layoutOf(keyboardLayout: number): Layout {
  const source = LAYOUTS[keyboardLayout & 0xffff] ?? UNKNOWN
  const layout = built.get(source) ?? build(source)
  built.set(source, layout)
  return layout
}

function build(source: Source): Layout {
  const { name, dead = '', deadAltGr = '', withoutCaps, decimal = '.' } = source
  const plain = keysOf(source.plain, dead).set(SPACE, { text: ' ' })
  return {
    name,
    plain,
    shift: keysOf(source.shift, dead).set(SPACE, { text: ' ' }),
    altGr: keysOf(source.altGr ?? [], deadAltGr),
    shiftAltGr: keysOf(source.shiftAltGr ?? [], ''),
    isShiftedByCaps: (code) => {
      if (withoutCaps) return !withoutCaps.includes(code)
      const key = plain.get(code)
      return key !== undefined && 'text' in key && /\p{Lowercase_Letter}/u.test(key.text)
    },
    decimal,
  }
}

function keysOf(rows: readonly string[], dead: string): Map<number, Written> {
  const keys = new Map<number, Written>()
  for (const [row, characters] of rows.entries()) {
    for (const [place, text] of [...characters].entries()) {
      const mark = dead.includes(text) ? markNamed(text) : undefined
      if (text !== ' ') keys.set(ROWS[row]![place]!, mark === undefined ? { text } : { mark })
    }
  }
  return keys
}

/** Text of each key on layouts other than US. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { KeyPress } from '../../../../proxies/desktop/screens/screen.ts'
import { Keyboard } from '../../../../proxies/rdp/local/keyboard.ts'

const LAYOUT = { us: 0x409, uk: 0x809, french: 0x40c, german: 0x407, austrian: 0xc07, spanish: 0xc0a }
const SHIFT = 0x2a
const CONTROL = 0x1d
const ALT = 0x38
const CAPS = 0x3a
const NUM = 0x45

/** A keyboard, and its typed text. Keys after E0 are negative. */
function typing(layout: number) {
  const keyboard = new Keyboard(layout)
  const event = (scancode: number, isDown: boolean) =>
    keyboard.key({ kind: 'key', code: Math.abs(scancode), extended: scancode < 0 ? 1 : 0, isDown })
  const press = (...scancodes: number[]): KeyPress[] =>
    scancodes.flatMap((scancode) => {
      const down = event(scancode, true)
      expect(event(scancode, false)).toBeUndefined()
      return down ?? []
    })
  const textOf = (presses: readonly KeyPress[]) =>
    presses.map((one) => ('text' in one ? one.text : `<${one.key}>`)).join('')
  return {
    keyboard,
    press,
    type: (...scancodes: number[]) => textOf(press(...scancodes)),
    /** Types with these modifiers held. */
    held: (modifiers: readonly number[], ...scancodes: number[]) => {
      for (const modifier of modifiers) event(modifier, true)
      const typed = textOf(press(...scancodes))
      for (const modifier of modifiers) event(modifier, false)
      return typed
    },
  }
}

const DIGITS = [0x29, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]
const TOP = [16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27]
const HOME = [30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 43]
const BOTTOM = [0x56, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53]
const ALL = [...DIGITS, ...TOP, ...HOME, ...BOTTOM, 0x39]

describe('rows', () => {
  test.each([
    [
      'us',
      LAYOUT.us,
      "`1234567890-=qwertyuiop[]asdfghjkl;'\\\\zxcvbnm,./ ",
      '~!@#$%^&*()_+QWERTYUIOP{}ASDFGHJKL:"||ZXCVBNM<>? ',
    ],
    [
      'uk',
      LAYOUT.uk,
      "`1234567890-=qwertyuiop[]asdfghjkl;'#\\zxcvbnm,./ ",
      '¬!"£$%^&*()_+QWERTYUIOP{}ASDFGHJKL:@~|ZXCVBNM<>? ',
    ],
    [
      'one that is not known',
      0x411,
      "`1234567890-=qwertyuiop[]asdfghjkl;'\\\\zxcvbnm,./ ",
      '~!@#$%^&*()_+QWERTYUIOP{}ASDFGHJKL:"||ZXCVBNM<>? ',
    ],
  ])('%s', (_, layout, plain, shifted) => {
    const { type, held } = typing(layout)
    expect(type(...ALL)).toBe(plain)
    expect(held([SHIFT], ...ALL)).toBe(shifted)
    expect(held([0x36], ...ALL)).toBe(shifted)
  })

  /** Inserts a space after dead keys, which write nothing by themselves. */
  const spaced = (scancodes: readonly number[], dead: readonly number[]) =>
    scancodes.flatMap((scancode) => (dead.includes(scancode) ? [scancode, 0x39] : [scancode]))

  test('French', () => {
    const { type, held } = typing(LAYOUT.french)
    expect(type(...spaced(ALL, [0x1a]))).toBe('²&é"\'(-è_çà)=azertyuiop^$qsdfghjklmù*<wxcvbn,;:! ')
    expect(held([SHIFT], ...spaced(ALL, [0x1a]))).toBe('1234567890°+AZERTYUIOP¨£QSDFGHJKLM%µ>WXCVBN?./§ ')
    expect(held([-ALT], 4, 5, 6, 7, 9, 10, 11, 12, 13, 0x12)).toBe('#{[|\\^@]}€')
    expect(held([-ALT], 3)).toBe('')
    expect(type(0x31)).toBe('ñ')
  })

  test('German, and in Austria', () => {
    for (const layout of [LAYOUT.german, LAYOUT.austrian]) {
      const { type, held } = typing(layout)
      expect(type(...spaced(ALL, [0x29, 0x0d]))).toBe('^1234567890ß´qwertzuiopü+asdfghjklöä#<yxcvbnm,.- ')
      expect(held([SHIFT], ...spaced(ALL, [0x0d]))).toBe('°!"§$%&/()=?`QWERTZUIOPÜ*ASDFGHJKLÖÄ\'>YXCVBNM;:_ ')
      expect(held([-ALT], 3, 4, 8, 9, 10, 11, 12, 0x10, 0x12, 0x1b, 0x56, 0x32)).toBe('²³{[]}\\@€~|µ')
      expect(held([-ALT, SHIFT], 12)).toBe('ẞ')
    }
  })

  test('Spanish', () => {
    const { type, held } = typing(LAYOUT.spanish)
    expect(type(...spaced(ALL, [0x1a, 0x28]))).toBe("º1234567890'¡qwertyuiop`+asdfghjklñ´ç<zxcvbnm,.- ")
    expect(held([SHIFT], ...spaced(ALL, [0x1a, 0x28]))).toBe(
      'ª!"·$%&/()=?¿QWERTYUIOP^*ASDFGHJKLÑ¨Ç>ZXCVBNM;:_ ',
    )
    expect(held([-ALT], 0x29, 2, 3, 4, 6, 7, 0x12, 0x1a, 0x1b, 0x28, 0x2b)).toBe('\\|@#€¬€[]{}')
    expect(held([-ALT], 5) + type(0x31)).toBe('ñ')
  })
})

test('dead keys: over a letter, by themselves, and before what takes no accent', () => {
  const { type, held, keyboard } = typing(LAYOUT.french)
  expect(type(0x1a, 0x12)).toBe('ê')
  expect(held([SHIFT], 0x1a) + type(0x17)).toBe('ï')
  expect(type(0x1a) + held([SHIFT], 0x12)).toBe('Ê')
  expect(type(0x1a, 0x39)).toBe('^')
  expect(type(0x1a, 0x30)).toBe('^b')
  expect(type(0x1a, 0x1a, 0x12)).toBe('^^e')
  type(0x1a)
  keyboard.begin()
  expect(type(0x12), 'on another screen').toBe('e')
})

test('caps lock is what it is on Windows: for letters, or for all keys of a French or German keyboard', () => {
  const us = typing(LAYOUT.us)
  us.press(CAPS)
  expect(us.type(2, 0x1e, 0x28)).toBe("1A'")
  expect(us.held([SHIFT], 2, 0x1e)).toBe('!a')
  us.press(CAPS)
  expect(us.type(0x1e)).toBe('a')
  const french = typing(LAYOUT.french)
  french.press(CAPS)
  expect(french.type(2, 3, 0x10, 0x32, 0x56)).toBe('12A?<')
  const german = typing(LAYOUT.german)
  german.press(CAPS)
  expect(german.type(2, 0x27, 0x2c)).toBe('!ÖY')
  const spanish = typing(LAYOUT.spanish)
  spanish.press(CAPS)
  expect(spanish.type(2, 0x27, 0x2b, 0x33)).toBe('1ÑÇ,')
})

test('locks are what the client says they are, and nothing is held then', () => {
  const { type, held, keyboard } = typing(LAYOUT.us)
  keyboard.locks(4)
  expect(type(0x1e, 0x47)).toBe('A<Home>')
  keyboard.locks(2)
  expect(type(0x1e, 0x47)).toBe('a7')
  keyboard.key({ kind: 'key', code: SHIFT, extended: 0, isDown: true })
  keyboard.key({ kind: 'key', code: CAPS, extended: 0, isDown: true })
  keyboard.key({ kind: 'key', code: CAPS, extended: 0, isDown: true })
  expect(type(0x1e), 'a lock that repeats').toBe('a')
  keyboard.locks(2)
  expect(type(0x1e)).toBe('a')
  expect(held([], 0x1e)).toBe('a')
})

test('the keypad', () => {
  const { type, held, press } = typing(LAYOUT.german)
  const pad = [0x47, 0x48, 0x49, 0x4b, 0x4c, 0x4d, 0x4f, 0x50, 0x51, 0x52, 0x53]
  expect(type(...pad, 0x37, 0x4a, 0x4e, -0x35, -0x1c)).toBe('78945612' + '30,*-+/<Enter>')
  expect(held([SHIFT], 0x47, 0x4d)).toBe('<Home><Right>')
  press(NUM)
  expect(type(...pad)).toBe('<Home><Up><PageUp><Left><Right><End><Down><PageDown><Delete>')
  expect(held([SHIFT], 0x47)).toBe('7')
  expect(typing(LAYOUT.french).type(0x53)).toBe('.')
})

test('named keys, with shift where it counts', () => {
  const { press, type, held, keyboard } = typing(LAYOUT.us)
  expect(press(0x0f)).toEqual([{ key: 'Tab', shift: false }])
  expect(type(1, 0x0e, 0x1c, -0x47, -0x48, -0x49, -0x4b, -0x4d, -0x4f, -0x50, -0x51, -0x53)).toBe(
    '<Escape><Backspace><Enter><Home><Up><PageUp><Left><Right><End><Down><PageDown><Delete>',
  )
  expect(type(0x3b, -0x5b, -0x5d, -0x37, -0x52, 0x46)).toBe('')
  keyboard.key({ kind: 'key', code: 0x36, extended: 1, isDown: true })
  expect(press(0x0f)).toEqual([{ key: 'Tab', shift: true }])
  keyboard.key({ kind: 'key', code: 0x36, extended: 1, isDown: false })
  expect(held([-SHIFT], 0x1e), 'what comes with arrows is no shift').toBe('a')
  keyboard.key({ kind: 'key', code: 0x1d, extended: 2, isDown: true })
  keyboard.key({ kind: 'key', code: NUM, extended: 2, isDown: true })
  expect(type(0x1e, 0x47), 'Pause').toBe('a7')
})

test('with Ctrl or Alt nothing is written; both, or AltGr with the Ctrl that Windows sends, are AltGr', () => {
  const { held } = typing(LAYOUT.german)
  expect(held([CONTROL], 0x10)).toBe('')
  expect(held([-CONTROL], 0x10)).toBe('')
  expect(held([ALT], 0x10)).toBe('')
  expect(held([CONTROL, ALT], 0x10)).toBe('@')
  expect(held([CONTROL, -ALT], 0x10)).toBe('@')
  expect(held([-ALT], 0x1e)).toBe('')
  expect(typing(LAYOUT.us).held([-ALT], 0x1e)).toBe('')
})

test('Unicode events: characters of one and two halves, and those that are keys', () => {
  const { keyboard } = typing(LAYOUT.us)
  const character = (code: number, isDown = true) => keyboard.character({ kind: 'character', code, isDown })
  expect(character(0xe9)).toEqual({ text: 'é' })
  expect(character(0xe9, false)).toBeUndefined()
  expect(character(0xd83d)).toBeUndefined()
  expect(character(0xd83d, false)).toBeUndefined()
  expect(character(0xde00)).toEqual({ text: '😀' })
  expect(character(0xde00), 'a half alone').toBeUndefined()
  character(0xd83d)
  expect(character(0x61)).toEqual({ text: 'a' })
  expect(character(0xde00), 'a half after another character').toBeUndefined()
  expect([8, 9, 10, 13, 27, 127].map((code) => character(code))).toEqual(
    ['Backspace', 'Tab', 'Enter', 'Enter', 'Escape', 'Delete'].map((key) => ({ key, shift: false })),
  )
  expect(character(0)).toBeUndefined()
})

test('no event makes it throw or write half of a character', () => {
  const bits = { code: fc.nat(0xff), isDown: fc.boolean() }
  const key = fc.record({
    kind: fc.constant('key' as const),
    extended: fc.constantFrom(0, 1, 2) as fc.Arbitrary<0 | 1 | 2>,
    ...bits,
  })
  const character = fc.record({
    kind: fc.constant('character' as const),
    isDown: fc.boolean(),
    code: fc.oneof(fc.nat(0xffff), fc.integer({ min: 0xd800, max: 0xdfff })),
  })
  const locks = fc.record({ kind: fc.constant('locks' as const), flags: fc.nat(15) })
  fc.assert(
    fc.property(
      fc.constantFrom(...Object.values(LAYOUT)),
      fc.array(fc.oneof(key, character, locks)),
      (layout, events) => {
        const keyboard = new Keyboard(layout)
        for (const event of events) {
          if (event.kind === 'locks') keyboard.locks(event.flags)
          else {
            const press = event.kind === 'key' ? keyboard.key(event) : keyboard.character(event)
            if (press && 'text' in press) expect(press.text.isWellFormed() && press.text !== '').toBe(true)
          }
        }
      },
    ),
  )
})

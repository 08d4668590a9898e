import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { harmless, TERMINAL_RESET, TerminalFilter } from '../../../../recordings/decode/terminal/filter.ts'
import { MAX_SEQUENCE_LENGTH, MAX_STRING_LENGTH } from '../../../../recordings/decode/terminal/parser.ts'

const filtered = (text: string) => new TerminalFilter().push(text)

describe('passes what colours, moves, erases and scrolls', () => {
  test.each([
    ['text', 'hello, w\u00f6rld \u{1f600}\r\n\t\b'],
    ['colours', '\x1b[m\x1b[0;1;31m\x1b[38;5;200m\x1b[38:2::10:20:30m\x1b[4:3m'],
    ['cursor', '\x1b[A\x1b[12B\x1b[3;4H\x1b[5G\x1b[7d\x1b7\x1b8\x1b[s\x1b[u\x1bM\x1bD\x1bE'],
    ['erasing and editing', '\x1b[J\x1b[2J\x1b[K\x1b[1K\x1b[3P\x1b[2@\x1b[4X\x1b[2L\x1b[2M\x1b[4h\x1b[4l'],
    ['scrolling', '\x1b[2;20r\x1b[r\x1b[3S\x1b[3T'],
    ['line drawing', '\x1b(0\x0fqqq\x0e\x1b(B\x1b)0'],
    ['screen and cursor modes', '\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[?1049l'],
    ['repeating within reason', '-\x1b[79b'],
    ['what puts the terminal back', TERMINAL_RESET],
  ])('%s', (_, text) => {
    expect(filtered(text)).toBe(text)
  })
})

describe('drops what reaches beyond the screen', () => {
  test.each([
    ['a title', '\x1b]0;pwned\x07'],
    ['a title ended by ST', '\x1b]2;pwned\x1b\\'],
    ['the clipboard', '\x1b]52;c;cm0gLXJmIC8=\x07'],
    ['a hyperlink', '\x1b]8;;http://evil/\x1b\\'],
    ['a palette', '\x1b]4;1;?\x1b\\'],
    ['DECRQSS and other DCS', '\x1bP$qm\x1b\\\x1bP+q544e\x1b\\'],
    ['sixel', '\x1bPq#0;2;0;0;0#0~~\x1b\\'],
    ['APC, PM, SOS', '\x1b_Gi=1;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\'],
    ['the same as C1 controls', '\u009d0;pwned\u009c\u0090$qm\u009c\u009fx\u009c\u009ex\u009c\u0098x\u009c'],
    ['title report', '\x1b[21t'],
    ['window operations', '\x1b[8;50;100t\x1b[2t'],
    ['device attributes', '\x1b[c\x1b[0c\x1b[>c\x1b[=c\x1bZ\u009ac'.slice(0, -1)],
    ['status and cursor reports', '\x1b[5n\x1b[6n\x1b[?6n\x1b[?15n'],
    ['checksum, terminal parameters', '\x1b[1;1;1;1;1;1*y\x1b[x'],
    ['mode requests', '\x1b[?1$p\x1b[4$p'],
    [
      'key and mouse modes',
      '\x1b[?1000h\x1b[?1006h\x1b[?2004h\x1b[?1h\x1b=\x1b>\x1b[>4;2m\x1b[?1004h\x1b[20h\x1b[2h',
    ],
    ['printing', '\x1b[5i\x1b[4i\x1b[?5i'],
    ['reset, answerback, bell, loading keys', '\x1bc\x05\x07\x1b[!p\x1b[1q'],
    ['other character sets and sizes', '\x1b%G\x1b#8\x1b*0\x1b(K'],
    ['NUL, DEL, XON, XOFF', '\0\x7f\x11\x13'],
    ['mouse highlighting', '\x1b[1;2;3;4;5T'],
    ['endless repeating', '\x1b[99999b\x1b[1000b'],
  ])('%s', (_, text) => {
    expect(filtered(text)).toBe('')
    expect(filtered(`a${text}b`)).toBe('ab')
  })

  test('only the harmful of several modes', () => {
    expect(filtered('\x1b[?25;1000;7h')).toBe('\x1b[?25;7h')
  })

  test('what a control character would bring back: sequences around and inside of others', () => {
    expect(filtered('\x1b]0;x\x1b[31mred')).toBe('\x1b[31mred')
    expect(filtered('\x1b[3\x1b]0;t\x07m')).toBe('m')
    expect(filtered('\x1b[3\x18m\x1b[3\x1am')).toBe('mm')
    expect(filtered('\x1b\x1b]0;t\x07x')).toBe('x')
    expect(filtered('\x1b[1\n;31mx')).toBe('\n\x1b[1;31mx')
    expect(filtered('\x1b[3\u00e9m')).toBe('\u00e9m')
    expect(filtered('\u009b31mred')).toBe('\x1b[31mred')
    expect(filtered('\u009b6n')).toBe('')
  })

  test('a string without an end hides no more than its bound', () => {
    expect(filtered(`\x1b]0;${'x'.repeat(MAX_STRING_LENGTH * 2)}evidence`)).toMatch(/evidence$/)
    expect(filtered(`\x1b[${'1'.repeat(MAX_SEQUENCE_LENGTH * 50)}mshown`)).toBe('shown')
  })
})

describe('whatever comes', () => {
  /** Written independently of the filter, so that a mistake there is not repeated here. */
  const ALLOWED = new RegExp(
    [
      '[ -~\\u00a0-\\uffff]',
      '[\\b\\t\\n\\v\\f\\r\\x0e\\x0f]',
      '\\x1b[78DEM]',
      '\\x1b[()][0AB]',
      '\\x1b\\[\\d{0,4}[A-GIJKLMPSTXZ@`ade]',
      '\\x1b\\[\\d{0,3}b',
      '\\x1b\\[(\\d{0,4}(;\\d{0,4})?)?[Hfr]',
      '\\x1b\\[[\\d;:]*m',
      '\\x1b\\[[su]',
      '\\x1b\\[4(;4)*[hl]',
      '\\x1b\\[\\?(7|25|47|1047|1048|1049)(;(7|25|47|1047|1048|1049))*[hl]',
    ].join('|'),
    'y',
  )
  const offence = (text: string): string | undefined => {
    ALLOWED.lastIndex = 0
    while (ALLOWED.lastIndex < text.length) {
      const at = ALLOWED.lastIndex
      if (!ALLOWED.test(text)) return JSON.stringify(text.slice(at, at + 20))
    }
    return undefined
  }
  const piece = fc.oneof(
    fc.constantFrom(
      '\x1b',
      '\x1b[',
      '\x1b]',
      '\x1bP',
      '\x1b\\',
      '\x07',
      '\u009b',
      '\u009d',
      '\u0090',
      '\u009c',
      '\x18',
    ),
    fc.constantFrom('?', '>', '!', '$', ' ', ';', ':', '52;c;', '0', '25', '1049', '6', '1000', '\n', '\r'),
    fc.constantFrom(...'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz@`{|}~'),
    fc.string({ unit: 'binary', maxLength: 4 }),
    fc.integer({ min: 0, max: 0x9f }).map((code) => String.fromCharCode(code)),
  )
  const stream = fc.array(
    fc.array(piece, { maxLength: 30 }).map((parts) => parts.join('')),
    { maxLength: 6 },
  )

  test('nothing outside of the list passes, and cutting the text changes nothing', () => {
    fc.assert(
      fc.property(stream, (pieces) => {
        const filter = new TerminalFilter()
        const passed = pieces.map((text) => filter.push(text)).join('')
        expect(offence(passed)).toBeUndefined()
        expect(filtered(pieces.join(''))).toBe(passed)
        expect(filtered(passed)).toBe(passed)
      }),
      { numRuns: 5000 },
    )
  })

  test('the list itself notices what is not on it', () => {
    for (const text of [
      '\x1b[6n',
      '\x1b]0;x\x07',
      '\x1b',
      '\x07',
      '\u009b',
      '\x1b[?1000h',
      '\x1bc',
      '\x1b[21t',
    ]) {
      expect(offence(text), JSON.stringify(text)).toBeDefined()
    }
  })
})

test('text for a listing shows its control and direction characters', () => {
  expect(harmless('a\x1b[2Jb\u009b\u202ec\n')).toBe('a\\u001b[2Jb\\u009b\\u202ec\\u000a')
})

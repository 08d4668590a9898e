import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MAX_COLUMNS, MAX_ROWS } from '../../../../proxies/ssh/commands/grid.ts'
import { Screen } from '../../../../proxies/ssh/commands/screen.ts'
import { KEPT, UnreadOutput } from '../../../../proxies/ssh/commands/unread.ts'
import { widthOf } from '../../../../proxies/ssh/commands/width.ts'
import { TerminalParser } from '../../../../recordings/decode/terminal/parser.ts'

function shown(output: string, columns = 10, rows = 4): Screen {
  const screen = new Screen(columns, rows)
  new TerminalParser(screen).push(output)
  return screen
}
const rowsOf = (screen: Screen) =>
  Array.from({ length: screen.rows }, (_, row) => screen.text({ first: row, last: row }).trimEnd())

describe('a screen', () => {
  test.each<[string, string, string[]]>([
    ['prints, returns and goes to the next row', 'ab\r\ncd\re', ['ab', 'ed', '', '']],
    ['wraps at the margin', '0123456789ab', ['0123456789', 'ab', '', '']],
    ['does not wrap when told so', '\x1b[?7l0123456789ab', ['012345678b', '', '', '']],
    ['scrolls', '1\r\n2\r\n3\r\n4\r\n5', ['2', '3', '4', '5']],
    ['scrolls within its margins', '\x1b[2;3r\x1b[1;1Htop\x1b[2;1Ha\r\nb\r\nc', ['top', 'b', 'c', '']],
    ['inserts and removes lines', 'a\r\nb\r\nc\x1b[2;1H\x1b[L\x1b[1;1H\x1b[M', ['', 'b', 'c', '']],
    [
      'inserts, removes and erases characters',
      'abcdef\r\x1b[2@\x1b[3C\x1b[P\x1b[2C\x1b[X',
      ['  acd f', '', '', ''],
    ],
    ['erases lines and the display', 'abc\r\ndef\x1b[2D\x1b[K\x1b[A\x1b[1K', ['  c', 'd', '', '']],
    ['erases all', 'abc\r\ndef\x1b[H\x1b[2Jx', ['x', '', '', '']],
    ['moves back and forth', 'abc\x1b[2DX\x1b[5GY\x1b[2BZ\x1b[2AV', ['aXc Y V', '', '     Z', '']],
    ['saves the cursor', 'ab\x1b7\r\ncd\x1b8X', ['abX', 'cd', '', '']],
    ['repeats', 'a\x1b[3b', ['aaaa', '', '', '']],
    ['inserts when told so', 'abc\r\x1b[4hX\x1b[4lY', ['XYbc', '', '', '']],
    ['goes up at the top', 'a\r\x1bMb', ['b', 'a', '', '']],
    ['has tab stops', 'a\tb\tc', ['a       bc', '', '', '']],
    ['skips strings', 'a\x1b]0;title\x07b\x1bP1$r\x1b\\c', ['abc', '', '', '']],
    [
      'leaves the alternate screen as it was',
      'ab\x1b[?1049h\x1b[2Jxx\r\nyy\x1b[?1049lc',
      ['abc', '', '', ''],
    ],
    ['is reset', 'ab\r\n\x1b[?1049h\x1bcx', ['x', '', '', '']],
    ['takes two cells for wide characters', '日本語日本x', ['日本語日本', 'x', '', '']],
    ['breaks a wide character before the margin', '123456789日', ['123456789', '日', '', '']],
    ['cuts a wide character that is written over', '日本\r\x1b[Cx', [' x本', '', '', '']],
    ['combines', 'e\u0301x', ['e\u0301x', '', '', '']],
  ])('%s', (_, output, rows) => {
    expect(rowsOf(shown(output))).toEqual(rows)
  })

  test('knows which rows are one line', () => {
    const screen = shown('0123456789abc')
    expect(screen.span(1)).toEqual({ first: 0, last: 1 })
    expect(screen.text(screen.span(0)).trimEnd()).toBe('0123456789abc')
    const hard = shown('0123456789\r\nabc')
    expect(hard.span(1)).toEqual({ first: 1, last: 1 })
    const wide = shown('123456789日x')
    expect(wide.text(wide.span(1)).trimEnd()).toBe('123456789日x')
  })

  test('keeps what is near the cursor when its size changes', () => {
    const screen = shown('1\r\n2\r\n3\r\n4567')
    screen.resize(3, 2)
    expect(rowsOf(screen)).toEqual(['3', '456'])
    screen.resize(5, 3)
    expect(rowsOf(screen)).toEqual(['3', '456', ''])
    expect([screen.row, screen.gone]).toEqual([1, 2])
  })

  test('has a limit, whatever the client claims', () => {
    const screen = new Screen(2 ** 32 - 1, 2 ** 32 - 1)
    expect([screen.columns, screen.rows]).toEqual([MAX_COLUMNS, MAX_ROWS])
    screen.resize(0, 0)
    expect([screen.columns, screen.rows]).toEqual([1, 1])
    new TerminalParser(screen).push('日\x1b[999999999999999b\x1b[99999999L\x1b[99999P\x1b[9999S')
  })
})

test.each([
  ['a', 1],
  ['é', 1],
  ['日', 2],
  ['한', 2],
  ['ﾊ', 1],
  ['Ａ', 2],
  ['😀', 2],
  ['\u0301', 0],
  ['\u200d', 0],
  ['❯', 1],
  ['⚡', 2],
] as const)('the width of %s is %d', (character, width) => {
  expect(widthOf(character.codePointAt(0)!)).toBe(width)
})

describe('output that nobody looked at', () => {
  const taken = (...pieces: (string | Buffer)[]) => {
    const unread = new UnreadOutput()
    for (const piece of pieces) unread.append(Buffer.from(piece))
    return unread.take()
  }
  const flood = (size: number) => Buffer.alloc(size, 'x')

  test('is kept whole while it is little', () => {
    expect(taken('ab', 'cd')).toMatchObject({
      dropped: false,
      alternate: undefined,
      data: Buffer.from('abcd'),
    })
  })

  test.each([1, 100, 8191, 20_000, 500_000])('keeps the last of pieces of %d bytes', (size) => {
    const unread = new UnreadOutput()
    for (let sum = 0; sum < 600_000; sum += size) unread.append(flood(size))
    unread.append(Buffer.from('the end'))
    const { data, dropped } = unread.take()
    expect(dropped).toBe(true)
    expect(data.length).toBeGreaterThanOrEqual(KEPT)
    expect(data.length).toBeLessThanOrEqual(2 * KEPT)
    expect(data.subarray(-8).toString()).toBe('xthe end')
    expect(unread.isEmpty).toBe(true)
  })

  test('knows the screen that was switched to in what is gone, also across pieces', () => {
    expect(taken('\x1b[?1049h', flood(100_000)).alternate).toBe(true)
    expect(taken('\x1b[?1049h', flood(50_000), '\x1b[?1049l', flood(50_000)).alternate).toBe(false)
    expect(taken('\x1b[?47h\x1b[?1047l?', flood(100_000)).alternate).toBe(false)
    for (let at = 1; at < 8; at++) {
      const [begin, end] = ['\x1b[?1049h'.slice(0, at), '\x1b[?1049h'.slice(at)]
      expect(taken(begin, Buffer.concat([Buffer.from(end), flood(100_000)])).alternate, begin).toBe(true)
      const edge = flood(KEPT - at)
      expect(taken(`${edge}${begin}`, `${end}${flood(10_000)}`, flood(16_000)).alternate, begin).toBe(true)
    }
  })
})

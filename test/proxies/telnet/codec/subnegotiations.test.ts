import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  buildTerminalType,
  buildWindowSize,
  parseEnvironment,
  parseTerminalType,
  parseWindowSize,
  VARIABLE_LIMIT,
} from '../../../../proxies/telnet/codec/subnegotiations.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')

test('a window size is read as it was built', () => {
  const number = fc.nat(0xffff)
  fc.assert(
    fc.property(number, number, (columns, rows) => {
      expect(parseWindowSize(buildWindowSize({ columns, rows }))).toEqual({ columns, rows })
    }),
  )
})

test.each([
  [
    { columns: -1, rows: 70_000 },
    { columns: 0, rows: 0xffff },
  ],
  [
    { columns: 80.5, rows: 24 },
    { columns: 80, rows: 24 },
  ],
])('%j is sent as %j', (size, sent) => expect(parseWindowSize(buildWindowSize(size))).toEqual(sent))

test.each(['', '\0\0\0', '\0\0\0\0\0'])('a window size of other length is refused: %j', (body) =>
  expect(() => parseWindowSize(bytes(body))).toThrow(MalformedError),
)

describe('terminal types', () => {
  test.each([
    ['\0XTERM-256COLOR', 'xterm-256color'],
    ['\0xterm', 'xterm'],
    [`\0${'x'.repeat(40)}`, 'x'.repeat(40)],
    [`\0${'x'.repeat(41)}`, undefined],
    ['\0', undefined],
    ['\0x\x1b[2J', undefined],
    ['\0-x', undefined],
    ['\0../../etc', undefined],
  ])('%j is %j', (body, name) => expect(parseTerminalType(bytes(body))).toBe(name))

  test.each(['', '\x01', '\x02xterm'])('%j is refused', (body) =>
    expect(() => parseTerminalType(bytes(body))).toThrow(MalformedError),
  )

  test.each([
    ['xterm-256color', '\0xterm-256color'],
    ['', '\0unknown'],
    ['x\xff', '\0unknown'],
  ])('%j is sent as %j', (name, body) => expect(buildTerminalType(name)).toEqual(bytes(body)))
})

describe('environments', () => {
  test.each([
    ['\0', []],
    ['\0\0USER\x01ops1', [{ name: 'USER', value: 'ops1' }]],
    ['\x02\0USER\x01', [{ name: 'USER', value: '' }]],
    ['\0\0USER', [{ name: 'USER', value: undefined }]],
    [
      '\0\0USER\x01a\x03LANG\x01C',
      [
        { name: 'USER', value: 'a' },
        { name: 'LANG', value: 'C' },
      ],
    ],
    ['\0\x03A\x02\x01B\x01c\x02\x02d\x02\0', [{ name: 'A\x01B', value: 'c\x02d\0' }]],
  ])('%j', (body, variables) => expect(parseEnvironment(bytes(body))).toEqual(variables))

  test.each([
    ['no begin', ''],
    ['SEND', '\x01\0USER'],
    ['a value of nothing', '\0\x01ops1'],
    ['a second value', '\0\0USER\x01a\x01b'],
    ['an ESC at the end', '\0\0USER\x01a\x02'],
    ['text before the first', '\0USER'],
    ['too many variables', `\0${'\0A\x01b'.repeat(VARIABLE_LIMIT + 1)}`],
  ])('refused: %s', (_, body) => expect(() => parseEnvironment(bytes(body))).toThrow(MalformedError))
})

import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  KeyReturns,
  OutputReturns,
  ShownReturns,
  type Translation,
  TypedReturns,
} from '../../../../proxies/telnet/codec/returns.ts'
import { cut } from '../../stream-events.ts'

function translated(by: Translation, ...chunks: Uint8Array[]): string {
  return Buffer.concat(chunks.map((chunk) => Buffer.from(by.translate(chunk)))).toString('latin1')
}
const bytes = (text: string) => Buffer.from(text, 'latin1')

describe('what is typed', () => {
  test.each([
    ['a\r\nb', 'a\rb'],
    ['a\r\0b', 'a\rb'],
    ['a\rb', 'a\rb'],
    ['a\nb', 'a\rb'],
    ['\r\n\r\n', '\r\r'],
    ['\r\r\n', '\r\r'],
    ['\n\n', '\r\r'],
    ['\r\n\n', '\r\r'],
    ['\0', '\0'],
    ['plain', 'plain'],
  ])('%j is %j', (typed, keys) => expect(translated(new TypedReturns(), bytes(typed))).toBe(keys))

  test('Return is there at once, and what belongs to it is dropped when it comes', () => {
    const returns = new TypedReturns()
    expect(translated(returns, bytes('ls\r'))).toBe('ls\r')
    expect(translated(returns, bytes('\n'))).toBe('')
    expect(translated(returns, bytes('\n'))).toBe('\r')
  })
})

describe('what a target shows', () => {
  test.each([
    ['a\r\nb', 'a\r\nb'],
    ['50%\r\0', '50%\r'],
    ['\r\0\0', '\r\0'],
    ['a\0b', 'a\0b'],
  ])('%j is %j', (shown, output) => expect(translated(new ShownReturns(), bytes(shown))).toBe(output))
})

test.each([
  ['a\r\nb', 'a\r\nb'],
  ['50%\r60%', '50%\r\x0060%'],
  ['\r\r\n', '\r\0\r\n'],
  ['a\nb', 'a\nb'],
])('output %j goes to a client as %j', (output, sent) =>
  expect(translated(new OutputReturns(), bytes(output))).toBe(sent),
)

test('keys go to a target with CR NUL for Return', () =>
  expect(translated(new KeyReturns(), bytes('show version\r\r\n'))).toBe('show version\r\0\r\0\n'))

/** CR, LF and NUL more often than others. */
const stream = fc.array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(0, 10, 13) }, fc.nat(255)), {
  maxLength: 40,
})
const places = fc.array(fc.nat(60))

test.each([
  ['TypedReturns', () => new TypedReturns()],
  ['ShownReturns', () => new ShownReturns()],
  ['OutputReturns', () => new OutputReturns()],
  ['KeyReturns', () => new KeyReturns()],
])('%s: where chunks end changes nothing', (_, create) => {
  fc.assert(
    fc.property(stream, places, (numbers, ends) => {
      const whole = Uint8Array.from(numbers)
      expect(translated(create(), ...cut(whole, ends))).toBe(translated(create(), whole))
    }),
    { numRuns: 2_000 },
  )
})

test('output and keys arrive at the other end as they were', () => {
  fc.assert(
    fc.property(stream, places, (numbers, ends) => {
      const whole = Uint8Array.from(numbers)
      for (const outgoing of [new OutputReturns(), new KeyReturns()]) {
        const sent = cut(whole, ends).map((piece) => Buffer.from(outgoing.translate(piece)))
        expect(translated(new ShownReturns(), ...sent)).toBe(Buffer.from(whole).toString('latin1'))
      }
    }),
    { numRuns: 2_000 },
  )
})

import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  buildWindowSize,
  ClientStream,
  type WindowSize,
} from '../../../../proxies/rlogin/codec/client-stream.ts'
import { CONTROL, isControl } from '../../../../proxies/rlogin/codec/control.ts'
import { cut } from '../../stream-events.ts'

function read(...chunks: Uint8Array[]): (string | WindowSize)[] {
  const events: (string | WindowSize)[] = []
  const stream = new ClientStream({
    data: (bytes) => {
      const text = Buffer.from(bytes).toString('latin1')
      const last = events.at(-1)
      if (typeof last === 'string') events[events.length - 1] = last + text
      else events.push(text)
    },
    windowSize: (size) => events.push(size),
  })
  for (const chunk of chunks) stream.feed(chunk)
  stream.release()
  expect(stream.isHolding).toBe(false)
  return events
}
const latin1 = (text: string) => Buffer.from(text, 'latin1')
const SIZE = { columns: 133, rows: 41, pixelWidth: 0, pixelHeight: 0 }

test('a message as rsh-redone sends it', () => {
  const message = Buffer.from('ffff7373' + '002900850000' + '0000', 'hex')
  expect(read(message)).toEqual([SIZE])
  expect(buildWindowSize(SIZE)).toEqual(Uint8Array.from(message))
})

test.each<[string, string[], (string | WindowSize)[]]>([
  ['between keys', ['ls', '\xff\xffss\0\x29\0\x85\0\0\0\0', '\r'], ['ls', SIZE, '\r']],
  ['after a byte that looks like its begin', ['\xff\xff\xffss\0\x29\0\x85\0\0\0\0'], ['\xff', SIZE]],
  ['none', ['\xff\xffsx', '\xffs', 'ÿ'], ['\xff\xffsx\xffs\xff']],
  ['half of one at the end', ['a\xff\xffss\0'], ['a\xff\xffss\0']],
])('%s', (_, chunks, events) => expect(read(...chunks.map(latin1))).toEqual(events))

test('keys are not held, but for what may begin a message', () => {
  const told: string[] = []
  const stream = new ClientStream({
    data: (bytes) => told.push(Buffer.from(bytes).toString('latin1')),
    windowSize: () => undefined,
  })
  stream.feed(latin1('abc'))
  expect([told, stream.isHolding]).toEqual([['abc'], false])
  stream.feed(latin1('d\xff'))
  expect([told, stream.isHolding]).toEqual([['abc', 'd'], true])
  stream.release()
  expect(told).toEqual(['abc', 'd', '\xff'])
})

test('what is sent is read, wherever chunks end', () => {
  const uint16 = fc.nat(0xffff)
  const size = fc.record({ columns: uint16, rows: uint16, pixelWidth: uint16, pixelHeight: uint16 })
  // Without 0xFF: text that ends in one, with a message after it, is ambiguous (see above).
  const text = fc.array(fc.nat(0xfe), { minLength: 1, maxLength: 20 }).map((all) => Buffer.from(all))
  fc.assert(
    fc.property(
      fc.array(fc.tuple(text, size), { maxLength: 5 }),
      fc.array(fc.nat(150), { maxLength: 8 }),
      (parts, places) => {
        const sent = Buffer.concat(parts.flatMap(([keys, window]) => [keys, buildWindowSize(window)]))
        expect(read(...cut(sent, places))).toEqual(
          parts.flatMap(([keys, window]) => [keys.toString('latin1'), window]),
        )
      },
    ),
    { numRuns: 1_000 },
  )
})

test.each([
  [CONTROL.WINDOW, true],
  [CONTROL.FLUSH | CONTROL.COOKED, true],
  [0, false],
  [0x61, false],
  [0x81, false],
  [0xff, false],
])('%i can be a control byte: %s', (byte, can) => expect(isControl(byte)).toBe(can))

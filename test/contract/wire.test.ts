/** Messages between broker and session workers as bytes: each comes out as it went in, and no false length is believed. */
import { Buffer } from 'node:buffer'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage, MAX_MESSAGE, MAX_WORKER_TEXT, WireError } from '../../src/contract/wire.ts'
import { EVERY_MESSAGE } from './messages.ts'

const bytesOf = (message: unknown) => Buffer.concat(encodeMessage(message))

/** Returns a message of this JSON text and these bytes behind it, whatever they say. */
function written(text: string, arrays: Uint8Array = new Uint8Array(0)): Buffer {
  const json = Buffer.from(text)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(4 + json.length + arrays.length, 0)
  head.writeUInt32BE(json.length, 4)
  return Buffer.concat([head, json, arrays])
}

/** Returns what the reader makes of it; every byte array as a plain one, whatever view it is. */
function read(bytes: Buffer): unknown[] {
  return new MessageReader().read(bytes).map(plain)
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}

describe('what goes in comes out', () => {
  test.each(EVERY_MESSAGE.map((message) => [nameOf(message), message] as const))('%s', (_name, message) => {
    expect(read(bytesOf(message))).toEqual([plain(message)])
  })

  test('byte arrays that are views of larger ones, empty ones, and one that occurs twice', () => {
    const large = Buffer.from('0123456789')
    const view = large.subarray(3, 6)
    const offset = new Uint8Array(large.buffer, large.byteOffset + 7, 2)
    const message = { view, empty: new Uint8Array(0), list: [offset, view], none: [], deep: [[{ view }]] }
    expect(read(bytesOf(message))).toEqual([
      {
        view: Uint8Array.from(Buffer.from('345')),
        empty: new Uint8Array(0),
        list: [Uint8Array.from(Buffer.from('78')), Uint8Array.from(Buffer.from('345'))],
        none: [],
        deep: [[{ view: Uint8Array.from(Buffer.from('345')) }]],
      },
    ])
  })

  test('a field that is undefined is absent', () => {
    expect(read(bytesOf({ here: 1, absent: undefined }))).toEqual([{ here: 1 }])
  })

  test('byte arrays are sent as they are, without a copy', () => {
    const array = Buffer.alloc(1000)
    expect(encodeMessage({ array }).at(-1)).toBe(array)
  })

  test('messages byte by byte, and all of them at once', () => {
    const stream = Buffer.concat(EVERY_MESSAGE.map(bytesOf))
    const reader = new MessageReader()
    const single = [...stream].flatMap((byte) => reader.read(Buffer.from([byte])))
    expect(single.map(plain)).toEqual(EVERY_MESSAGE.map(plain))
    expect(read(stream)).toEqual(EVERY_MESSAGE.map(plain))
  })

  test('a message that is cut is none yet', () => {
    const whole = bytesOf({ bytes: Buffer.from('abc') })
    for (let length = 0; length < whole.length; length++) expect(read(whole.subarray(0, length))).toEqual([])
  })
})

describe('refuses', () => {
  const refused = (bytes: Buffer) => expect(() => new MessageReader().read(bytes)).toThrow(WireError)

  test('a length above the limit, before anything of the message is there', () => {
    const head = Buffer.alloc(4)
    for (const length of [MAX_MESSAGE + 1, 0x7fff_ffff, 0xffff_ffff]) {
      head.writeUInt32BE(length)
      refused(head)
    }
  })

  test('a text that is longer than its message, or than the limit', () => {
    const cut = written('{}')
    cut.writeUInt32BE(3, 4)
    refused(cut)
    cut.writeUInt32BE(0xffff_ffff, 4)
    refused(cut)
    const long = written(`"${'x'.repeat(MAX_WORKER_TEXT)}"`)
    expect(() => new MessageReader(MAX_WORKER_TEXT).read(long)).toThrow(WireError)
    expect(new MessageReader().read(long)).toHaveLength(1)
  })

  test.each([0, 1, 3])('a message of %i bytes, which has no room for the length of its text', (length) => {
    const short = Buffer.alloc(4 + length)
    short.writeUInt32BE(length)
    refused(short)
  })

  test.each([4, -1, 0.5, 2 ** 53, null, '3', [3], [0, 3], {}, true])(
    'a byte array of length %j in a message with three bytes',
    (length) => refused(written(JSON.stringify({ bytes: { $bytes: length } }), Buffer.from('abc'))),
  )

  test('byte arrays that share bytes: a small message would become a large one', () => {
    refused(written(JSON.stringify([{ $bytes: 3 }, { $bytes: 1 }]), Buffer.from('abc')))
  })

  test('bytes that belong to no array', () => {
    refused(written(JSON.stringify([{ $bytes: 2 }]), Buffer.from('abc')))
    refused(written('{}', Buffer.from('abc')))
  })

  test('text that is no JSON', () => {
    for (const text of ['', '{', 'undefined', '{"a":NaN}', "{'a':1}", '\u0000']) refused(written(text))
  })

  test('nesting without end', () => {
    for (const [open, close] of [
      ['[', ']'],
      ['{"a":', '}'],
    ] as const) {
      const depth = 400_000
      refused(written(`${open.repeat(depth)}1${close.repeat(depth)}`))
    }
  })

  test('to write a message that the other side would refuse', () => {
    expect(() => encodeMessage({ bytes: new Uint8Array(MAX_MESSAGE) })).toThrow(WireError)
    expect(() => encodeMessage({ text: 'x'.repeat(MAX_MESSAGE) })).toThrow(WireError)
  })
})

test.each(['{"isAdmin":true}', '{"$bytes":3}'])('%s as `__proto__` changes no prototype', (value) => {
  const arrays = Buffer.from(value.includes('bytes') ? 'abc' : '')
  const bytes = written(`{"a":{"__proto__":${value}}}`, arrays)
  const [message] = new MessageReader().read(bytes) as [{ a: { isAdmin?: boolean } }]
  expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
  expect(message.a.isAdmin).toBeUndefined()
  expect(Object.getPrototypeOf(message.a)).toBe(Object.prototype)
  expect(Object.hasOwn(message.a, '__proto__')).toBe(true)
})

test('a sender of single bytes gets no more memory than its message has', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return heapUsed + external
  }
  const reader = new MessageReader()
  const head = Buffer.alloc(4)
  head.writeUInt32BE(MAX_MESSAGE)
  reader.read(head)
  const before = used()
  // As the socket hands them out: each byte with a buffer of its own.
  for (let i = 0; i < 200_000; i++) reader.read(Buffer.from(new Uint8Array(1).buffer))
  // Without the bound each byte keeps more than 100.
  expect((used() - before) / 200_000).toBeLessThan(60)
  expect(reader.read(Buffer.alloc(10))).toEqual([])
})

function nameOf(message: (typeof EVERY_MESSAGE)[number]): string {
  if (message.type === 'ask') return `ask ${message.method}`
  if (message.type === 'notice') return `notice ${message.notice.type}`
  return message.type
}

import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  ACCEPTED,
  AnswerReader,
  buildHandshake,
  type Handshake,
  HandshakeReader,
  NAME_LIMIT,
  REASON_LIMIT,
  TERMINAL_LIMIT,
} from '../../../../proxies/rlogin/codec/handshake.ts'

const bytes = (text: string) => Buffer.from(text, 'latin1')
const read = (...chunks: Uint8Array[]) => {
  const reader = new HandshakeReader()
  return chunks.map((chunk) => reader.feed(chunk)).at(-1)
}

describe('what a client says', () => {
  test.each<[string, string, Handshake]>([
    [
      'rsh-redone’s rlogin',
      '\0root\0ops1+root@srv1\0xterm-256color/38400\0',
      { clientUser: 'root', serverUser: 'ops1+root@srv1', terminal: 'xterm-256color', speed: 38400 },
    ],
    [
      'plink’s, without a user of its own',
      '\0\0labuser\0xterm/38400\0',
      { clientUser: '', serverUser: 'labuser', terminal: 'xterm', speed: 38400 },
    ],
    ['nothing', '\0\0\0\0', { clientUser: '', serverUser: '', terminal: '', speed: 38400 }],
    [
      'no name of a terminal',
      '\0a\0b\0\x1b[2J/9600\0',
      { clientUser: 'a', serverUser: 'b', terminal: '', speed: 9600 },
    ],
    [
      'no speed',
      '\0a\0b\0vt100/fast\0',
      { clientUser: 'a', serverUser: 'b', terminal: 'vt100', speed: 38400 },
    ],
  ])('%s', (_, said, handshake) => expect(read(bytes(said))).toEqual({ handshake, rest: Buffer.alloc(0) }))

  test('what follows is not lost', () => {
    const found = read(bytes('\0a\0b\0vt100/9600\0ls\r'))
    expect(found?.rest).toEqual(bytes('ls\r'))
    const long = Buffer.alloc(5000, 0x61)
    expect(read(Buffer.concat([bytes('\0a\0b\0vt100/9600\0'), long]))?.rest).toEqual(long)
  })

  test.each([
    ['another protocol', 'GET / HTTP/1.1\r\n'],
    ['a user of the client that is too long', `\0${'a'.repeat(NAME_LIMIT + 1)}`],
    ['a user for the server that is too long', `\0a\0${'a'.repeat(NAME_LIMIT + 1)}\0x/1\0`],
    ['a terminal that is too long', `\0a\0b\0${'a'.repeat(TERMINAL_LIMIT + 1)}\0`],
    ['a name that is not UTF-8', '\0a\0\xff\0x/1\0'],
    ['an overlong form', '\0a\0\xc0\x80\0x/1\0'],
  ])('refused: %s', (_, said) => {
    expect(() => read(bytes(said))).toThrow(MalformedError)
    expect(() => read(...Array.from(bytes(said), (byte) => Uint8Array.of(byte)))).toThrow(MalformedError)
  })

  const name = fc
    .string({ unit: 'binary', maxLength: 60 })
    .filter((text) => !text.includes('\0') && Buffer.byteLength(text) <= NAME_LIMIT)
  test('is read as it was built, wherever chunks end', () => {
    fc.assert(
      fc.property(name, name, fc.nat(600), fc.uint8Array(), (clientUser, serverUser, at, after) => {
        const handshake = { clientUser, serverUser, terminal: 'xterm', speed: 9600 }
        const sent = Buffer.concat([buildHandshake(handshake), after])
        const reader = new HandshakeReader()
        const first = reader.feed(sent.subarray(0, at))
        const last = first ?? reader.feed(sent.subarray(at))
        const rest = first ? Buffer.concat([first.rest, sent.subarray(at)]) : last?.rest
        expect({ ...last, rest }).toEqual({ handshake, rest: Buffer.from(after) })
      }),
      { numRuns: 1_000 },
    )
  })

  test.each([
    ['a zero byte', { serverUser: 'root\0' }],
    ['more than fits', { clientUser: 'é'.repeat(NAME_LIMIT) }],
    ['a long terminal', { terminal: 'x'.repeat(TERMINAL_LIMIT) }],
  ])('is not built from %s', (_, part) =>
    expect(() => buildHandshake({ clientUser: '', serverUser: '', terminal: '', speed: 1, ...part })).toThrow(
      MalformedError,
    ),
  )
})

describe('what a server answers', () => {
  test('consent, and what comes with it', () => {
    const reader = new AnswerReader()
    expect(reader.feed(Buffer.alloc(0))).toBeUndefined()
    expect(reader.feed(Buffer.concat([ACCEPTED, bytes('Password: ')]))).toEqual(bytes('Password: '))
    expect(reader.refusal).toBeUndefined()
  })

  test.each([
    ['BSD’s form', ['\x01Permission denied.\r\n'], 'Permission denied.'],
    ['in pieces', ['\x01Per', 'mission', ' denied.\n'], 'Permission denied.'],
    ['a text alone', ['rlogind: Host address mismatch.\r\n'], 'rlogind: Host address mismatch.'],
    ['one that has a zero byte later', ['No', '\0'], 'No\0'],
    ['one without end', [`\x01${'x'.repeat(10_000)}`, 'y'], 'x'.repeat(REASON_LIMIT)],
  ])('a refusal, %s', (_, pieces, text) => {
    const reader = new AnswerReader()
    for (const piece of pieces) expect(reader.feed(bytes(piece))).toBeUndefined()
    expect(reader.refusal).toBe(text)
  })

  test('nothing', () => expect(new AnswerReader().refusal).toBeUndefined())
})

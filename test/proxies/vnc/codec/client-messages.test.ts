import { Buffer } from 'node:buffer'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  encodeClientCutText,
  encodeClientFence,
  encodeContinuousUpdates,
  encodeExtendedClientCutText,
  encodeKey,
  encodePointer,
  encodeSetDesktopSize,
  encodeSetEncodings,
  encodeSetPixelFormat,
  encodeUpdateRequest,
} from '../../../../proxies/vnc/codec/client-encoder.ts'
import { type ClientMessage, ClientMessageReader } from '../../../../proxies/vnc/codec/client-messages.ts'
import { ENCODING } from '../../../../proxies/vnc/codec/encodings.ts'
import { CUT_TEXT_LIMIT } from '../../../../proxies/vnc/codec/limits.ts'
import { RGB888 } from '../../../../proxies/vnc/codec/pixel-format.ts'

function read(chunks: readonly Uint8Array[], hasBoth = false): [ClientMessage, string][] {
  const read: [ClientMessage, string][] = []
  const reader = new ClientMessageReader((message, bytes) => {
    // Views are valid during the call only.
    read.push([structuredClone(message), Buffer.from(bytes).toString('hex')])
  })
  reader.hasExtendedButtons = hasBoth
  reader.hasExtendedClipboard = hasBoth
  for (const chunk of chunks) reader.feed(Uint8Array.from(chunk))
  return read
}

const area = { x: 1, y: 2, width: 300, height: 400 }
const screen = { id: 7, x: 0, y: 0, width: 800, height: 600, flags: 1 }
const MESSAGES: [ClientMessage, Buffer][] = [
  [{ kind: 'set-pixel-format', format: RGB888 }, encodeSetPixelFormat(RGB888)],
  [
    { kind: 'set-encodings', encodings: [ENCODING.TIGHT, ENCODING.CURSOR, ENCODING.EXTENDED_CLIPBOARD] },
    encodeSetEncodings([ENCODING.TIGHT, ENCODING.CURSOR, ENCODING.EXTENDED_CLIPBOARD]),
  ],
  [{ kind: 'set-encodings', encodings: [] }, encodeSetEncodings([])],
  [{ kind: 'update-request', isIncremental: true, ...area }, encodeUpdateRequest(true, area)],
  [{ kind: 'key', isDown: true, keysym: 0xff0d, keycode: undefined }, encodeKey(true, 0xff0d)],
  [
    { kind: 'key', isDown: false, keysym: 0xff53, keycode: 0xcd },
    Buffer.from('ff00 0000 0000ff53 000000cd'.replaceAll(' ', ''), 'hex'),
  ],
  [{ kind: 'pointer', x: 10, y: 20, buttons: 5 }, encodePointer(10, 20, 5)],
  [{ kind: 'pointer', x: 10, y: 20, buttons: 0x101 }, Buffer.from('0581000a001402', 'hex')],
  [
    { kind: 'cut-text', text: Buffer.from('Gr\xfc\xdfe', 'latin1') },
    encodeClientCutText(Buffer.from('Gr\xfc\xdfe', 'latin1')),
  ],
  [
    { kind: 'extended-cut-text', flags: 0x08000001, body: Buffer.of(9) },
    encodeExtendedClientCutText(0x08000001, Buffer.of(9)),
  ],
  [{ kind: 'continuous-updates', isEnabled: true, ...area }, encodeContinuousUpdates(true, area)],
  [
    { kind: 'fence', flags: 0x80000003, payload: Buffer.from('abc') },
    encodeClientFence(0x80000003, Buffer.from('abc')),
  ],
  [
    { kind: 'set-desktop-size', width: 800, height: 600, screens: [screen] },
    encodeSetDesktopSize(800, 600, [screen]),
  ],
]

/** Makes buffers and arrays of bytes equal. */
const plain = (messages: [ClientMessage, string | Buffer][]) =>
  messages.map(([message, bytes]) => [
    JSON.stringify(message, (_key, value) =>
      value?.type === 'Buffer' || value instanceof Uint8Array
        ? Buffer.from(value.data ?? value).toString('latin1')
        : value,
    ),
    typeof bytes === 'string' ? bytes : bytes.toString('hex'),
  ])

test('every message, in one piece and byte by byte', () => {
  const all = Buffer.concat(MESSAGES.map(([, bytes]) => bytes))
  expect(plain(read([all], true))).toEqual(plain(MESSAGES))
  expect(
    plain(
      read(
        [...all].map((byte) => Uint8Array.of(byte)),
        true,
      ),
    ),
  ).toEqual(plain(MESSAGES))
})

test('without the extension bit 7 of the buttons is the back button', () => {
  const messages = read([Buffer.from('0581000a00140404', 'hex'), Buffer.alloc(6)])
  expect(messages.map(([message]) => message)).toEqual([
    { kind: 'pointer', x: 10, y: 20, buttons: 0x81 },
    { kind: 'key', isDown: true, keysym: 0, keycode: undefined },
  ])
})

describe('refused', () => {
  const cases: [what: string, bytes: Buffer, words: RegExp][] = [
    ['a message that nobody knows', Buffer.of(1), /type 1/],
    ['another message of QEMU', Buffer.of(255, 1), /message 1/],
    ['more encodings than any viewer has', Buffer.of(2, 0, 4, 1), /1024 encodings .* 1025/],
    ['a text of 2 GiB', Buffer.from('0600000080000000', 'hex'), /found 2147483648/],
    ['a text past the limit', encodeClientCutText(Buffer.alloc(CUT_TEXT_LIMIT + 1)), /4194304/],
    ['an extended text without an extension', Buffer.from('06000000fffffffb', 'hex'), /found 4294967291/],
    ['a fence of 65 bytes', Buffer.from('f80000000000000041', 'hex'), /64 bytes/],
    ['24 bits a pixel', encodeSetPixelFormat({ ...RGB888, bitsPerPixel: 24 as 32 }), /found 24/],
    ['a colour of no number of bits', encodeSetPixelFormat({ ...RGB888, redMax: 254 }), /red of n bits/],
    ['a colour outside the pixel', encodeSetPixelFormat({ ...RGB888, blueShift: 25 }), /blue of n bits/],
    ['a depth of more than the pixel', encodeSetPixelFormat({ ...RGB888, depth: 33 }), /depth of at most 32/],
    ['a colour map of 32 bits', encodeSetPixelFormat({ ...RGB888, isTrueColour: false }), /colour map/],
  ]
  test.each(cases)('%s', (_what, bytes, words) => {
    const refusal = expect(() => read([bytes]))
    refusal.toThrow(MalformedError)
    refusal.toThrow(words)
  })

  test('an extended text too short for its flags', () => {
    expect(() => read([Buffer.from('06000000fffffffd', 'hex')], true)).toThrow(/at least 4 bytes .* 3/)
  })
})

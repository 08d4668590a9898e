import { Buffer } from 'node:buffer'
import { constants, deflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import {
  ACTION,
  type ClipboardMessage,
  encodeClipboard,
  FORMAT,
  parseClipboard,
} from '../../../../proxies/vnc/codec/clipboard.ts'
import { CLIPBOARD_DATA_LIMIT } from '../../../../proxies/vnc/codec/limits.ts'

const MESSAGES: ClipboardMessage[] = [
  {
    action: 'caps',
    formats: FORMAT.TEXT | FORMAT.HTML,
    actions: ACTION.PROVIDE | ACTION.PEEK,
    sizes: [20, 0],
  },
  { action: 'request', formats: FORMAT.TEXT },
  { action: 'peek', formats: 0 },
  { action: 'notify', formats: FORMAT.TEXT | FORMAT.RTF },
  {
    action: 'provide',
    items: new Map([
      [FORMAT.TEXT, Buffer.from('Grüße\r\n\0')],
      [FORMAT.HTML, Buffer.from('<b>')],
    ]),
  },
]

test.each(MESSAGES)('$action there and back', (message) => {
  const { flags, body } = encodeClipboard(message)
  expect(parseClipboard(flags, body)).toEqual(message)
})

test('data of a stream that is flushed and not ended, as TigerVNC sends it', () => {
  const body = deflateSync(Buffer.from('\0\0\0\x03abc'), { finishFlush: constants.Z_SYNC_FLUSH })
  expect(parseClipboard(ACTION.PROVIDE | FORMAT.TEXT, body)).toEqual({
    action: 'provide',
    items: new Map([[FORMAT.TEXT, Buffer.from('abc')]]),
  })
})

test('a bomb is left before it has gone off', () => {
  const body = deflateSync(Buffer.alloc(64 * 1024 * 1024))
  expect(body.length).toBeLessThan(100_000)
  const before = process.memoryUsage().arrayBuffers
  expect(() => parseClipboard(ACTION.PROVIDE | FORMAT.TEXT, body)).toThrow(MalformedError)
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(3 * CLIPBOARD_DATA_LIMIT)
})

test.each([
  ['no action', 1, Buffer.alloc(0)],
  ['two actions', ACTION.REQUEST | ACTION.NOTIFY | 1, Buffer.alloc(0)],
  ['sizes that are missing', ACTION.CAPS | 3, Buffer.alloc(4)],
  ['what is not compressed', ACTION.PROVIDE | 1, Buffer.from('plain text')],
  ['less than is said', ACTION.PROVIDE | 1, deflateSync(Buffer.from('\0\0\0\x04abc'))],
  ['a format that is missing', ACTION.PROVIDE | 3, deflateSync(Buffer.from('\0\0\0\x03abc'))],
] as const)('refused: %s', (_what, flags, body) => {
  expect(() => parseClipboard(flags, body)).toThrow(MalformedError)
})

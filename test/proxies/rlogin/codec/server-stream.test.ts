import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { CONTROL } from '../../../../proxies/rlogin/codec/control.ts'
import { ServerStream } from '../../../../proxies/rlogin/codec/server-stream.ts'

const { WINDOW, FLUSH, COOKED } = CONTROL
type Chunk = [bytes: string, isUrgent?: boolean]

function read(chunks: Chunk[]): (string | number)[] {
  const events: (string | number)[] = []
  const stream = new ServerStream({
    data: (bytes) => events.push(Buffer.from(bytes).toString('latin1')),
    control: (byte) => events.push(byte),
  })
  for (const [bytes, isUrgent = false] of chunks) stream.feed(Buffer.from(bytes, 'latin1'), isUrgent)
  return events
}
const utf8 = (text: string) => Buffer.from(text).toString('latin1')

test.each<[string, Chunk[], (string | number)[]]>([
  ['announced, with output after it', [['a'], ['\x80b', true]], ['a', WINDOW, 'b']],
  ['announced, of several bits', [['\x22', true]], [FLUSH | COOKED]],
  ['a request for the size, alone', [['a'], ['\x80'], ['b']], ['a', WINDOW, 'b']],
  ['a request for the size, after whole characters', [[utf8('é€😀')], ['\x80']], [utf8('é€😀'), WINDOW]],
  ['one byte of a character, alone', [['\xe2'], ['\x82'], ['\x80']], ['\xe2', '\x82', '\x80']],
  [
    'the end of a long one',
    [[`${'x'.repeat(50)}\xf0\x9f`], ['\x98'], ['\x80']],
    [`${'x'.repeat(50)}\xf0\x9f`, '\x98', '\x80'],
  ],
  ['a space, alone', [[' ']], [' ']],
  ['a byte that is none, announced', [['a', true]], ['a']],
  ['the first request for the size, with output after it', [['a'], ['\x80b']], ['a', WINDOW, 'b']],
  ['the same at the beginning', [['\x80b']], [WINDOW, 'b']],
  ['not one after it, where it stands with other bytes', [['\x80'], ['\x80b']], [WINDOW, '\x80b']],
  ['the end of a character, with more after it', [['\xe2\x82'], ['\x80b']], ['\xe2\x82', '\x80b']],
  ['other control bytes, with output after them', [['\x90b']], ['\x90b']],
  ['one in the middle of output', [['a\x80b']], ['a\x80b']],
  ['nothing', [['', true]], []],
])('%s', (_, chunks, events) => expect(read(chunks)).toEqual(events))

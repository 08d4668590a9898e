/** Rlogin toward a target: the order of its messages, without a socket. */
import { Buffer } from 'node:buffer'
import { beforeEach, expect, test } from 'vitest'
import { RloginWire } from '../../../proxies/rlogin/wire.ts'

const TERMINAL = { type: 'xterm', columns: 80, rows: 24, widthPixels: 0, heightPixels: 0 }

let written: Buffer
let shown: string
let wire: RloginWire

beforeEach(() => {
  written = Buffer.alloc(0)
  shown = ''
  wire = new RloginWire(
    {
      write: (bytes) => {
        written = Buffer.concat([written, bytes])
      },
      writeUrgent: () => expect.unreachable('a client has no urgent data'),
      output: (bytes) => {
        shown += Buffer.from(bytes).toString('latin1')
      },
    },
    { clientUser: 'bastion', serverUser: 'root' },
  )
})

const says = (text: string, isUrgent = false) => wire.receive(Buffer.from(text, 'latin1'), isUrgent)
const saidSince = (length: number) => written.subarray(length).toString('latin1')

test('the handshake comes first, and nothing is shown before the consent', () => {
  wire.start(TERMINAL)
  expect(written.toString()).toBe('\0bastion\0root\0xterm/38400\0')
  says('\0')
  says('Password: ')
  expect(shown).toBe('Password: ')
})

test.each([
  ['announced as urgent', ['\0', 'login', '\x80more'], [false, false, true]],
  ['together with the first words, unannounced', ['\0', '\x80more'], [false, false]],
  ['together with the consent', ['\0\x80more'], [false]],
  ['alone', ['\0', '\x80', 'more'], [false, false, false]],
])('the size of the window is told when it is asked for, %s, and when it changes then', (_, said, urgent) => {
  wire.start(TERMINAL)
  wire.resize({ ...TERMINAL, columns: 100_000, rows: 25 })
  const before = written.length
  for (const [index, text] of said.entries()) says(text, urgent[index])
  expect(saidSince(before)).toBe('\xff\xffss\x00\x19\xff\xff\0\0\0\0')
  expect(shown).toMatch(/^(?:login)?more$/)
  wire.resize({ ...TERMINAL, columns: 132, rows: 43 })
  expect(saidSince(before + 12)).toBe('\xff\xffss\x00\x2b\x00\x84\0\0\0\0')
})

test('keys go as they are, an interrupt is Ctrl-C, and a break there is none', () => {
  wire.start(TERMINAL)
  says('\0')
  const before = written.length
  wire.send(Buffer.of(0xff, 0x0d))
  wire.interrupt()
  expect(wire.break()).toBe(false)
  expect(saidSince(before)).toBe('\xff\r\x03')
})

test('a refusal is kept, and is no output', () => {
  wire.start(TERMINAL)
  says('\x01rlogind: Permission denied.\r\n')
  expect([wire.refusal, shown]).toEqual(['rlogind: Permission denied.', ''])
})

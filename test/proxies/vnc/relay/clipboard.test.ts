import { Buffer } from 'node:buffer'
import { hash } from 'node:crypto'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { ACTION, encodeClipboard, FORMAT } from '../../../../proxies/vnc/codec/clipboard.ts'
import { ClipboardGuard } from '../../../../proxies/vnc/relay/clipboard.ts'
import type { Right } from '../../../../src/model/rights.ts'

const MIB = 2 ** 20
const BOTH: Right[] = ['VNC', 'VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN']

function guardWith(rights: Right[], isViewOnly = false) {
  const seen = {
    told: [] as unknown[],
    denied: [] as string[],
    recorded: [] as { direction: string; format: string; size: number; text?: string }[],
    time: 0,
  }
  const guard = new ClipboardGuard({
    rights: new Set(rights),
    isViewOnly,
    uses: () => undefined,
    tell: (fields) => seen.told.push(fields),
    denied: (right, reason) => seen.denied.push(`${right}: ${reason}`),
    record: (direction, { format, size, text }) =>
      void seen.recorded.push({ direction, format, size, ...(text !== undefined && { text }) }),
    now: () => seen.time,
  })
  return { guard, seen }
}

function provided(text: string): { flags: number; body: Buffer } {
  return encodeClipboard({ action: 'provide', items: new Map([[FORMAT.TEXT, Buffer.from(`${text}\0`)]]) })
}

function bombOf(size: number, byte: number): Buffer {
  const data = Buffer.alloc(4 + size, byte)
  data.writeUInt32BE(size)
  return deflateSync(data)
}

describe('data of the extended clipboard', () => {
  test('passes by its direction, and is recorded as people read it', () => {
    const { guard, seen } = guardWith(BOTH)
    const { flags, body } = provided('zwei\r\nZeilen')
    expect(guard.extended('up', flags, body)).toEqual({ flags, body })
    expect(seen.recorded).toEqual([{ direction: 'up', format: 'text', size: 11, text: 'zwei\nZeilen' }])
    expect(guard.extended('up', flags, body)).toEqual({ flags, body })
    expect(seen.recorded).toHaveLength(1)
    expect(seen.told).toEqual([
      {
        subprotocol: 'VNC_CLIPBOARD_UP',
        direction: 'up',
        format: 'text',
        size: 11,
        sha256: hash('sha256', 'zwei\nZeilen'),
      },
    ])
  })

  test('is not looked into where the right is missing: what cannot be read is no fault there', () => {
    const { guard, seen } = guardWith(['VNC', 'VNC_CLIPBOARD_DOWN'])
    const flags = ACTION.PROVIDE | FORMAT.TEXT
    expect(guard.extended('up', flags, Buffer.from('not zlib'))).toBeUndefined()
    expect(guard.extended('up', flags, Buffer.from('neither'))).toBeUndefined()
    expect(seen.denied).toEqual(['VNC_CLIPBOARD_UP: the right is missing'])
    expect(() => guard.extended('down', flags, Buffer.from('not zlib'))).toThrow('vnc:')
  })

  test('is inflated for as many bytes as its direction has, and what comes then does not pass', () => {
    const { guard, seen } = guardWith(BOTH)
    const flags = ACTION.PROVIDE | FORMAT.TEXT
    const size = 7 * MIB
    const passes = (byte: number) => guard.extended('down', flags, bombOf(size, byte)) !== undefined
    expect([1, 2, 3, 4, 5].map(passes)).toEqual([true, true, true, false, false])
    expect(seen.recorded.map((copied) => copied.size)).toEqual([size, size, size])
    expect(seen.denied).toEqual(['VNC_CLIPBOARD_DOWN: too much data in too short a time'])
    // The other direction has its own bucket, and time refills it.
    expect(guard.extended('up', flags, provided('text').body)).toBeDefined()
    seen.time += 4_000
    expect(passes(5)).toBe(false)
    seen.time += 4_000
    expect(passes(5)).toBe(true)
  })
})

describe('formats of the extended clipboard', () => {
  const ALL = FORMAT.TEXT | FORMAT.RTF | FORMAT.HTML | FORMAT.DIB | FORMAT.FILES | 0x8000

  test('that are texts pass, each with an event of its own and its own bytes in the recording', () => {
    const { guard, seen } = guardWith(BOTH)
    const items = new Map([
      [FORMAT.RTF, Buffer.from('{\\rtf1 a}')],
      [FORMAT.HTML, Buffer.from('<b>a</b>')],
    ])
    const { flags, body } = encodeClipboard({ action: 'provide', items })
    expect(guard.extended('down', flags, body)).toEqual({ flags, body })
    expect(seen.recorded).toEqual([
      { direction: 'down', format: 'rtf', size: 9, text: '{\\rtf1 a}' },
      { direction: 'down', format: 'html', size: 8, text: '<b>a</b>' },
    ])
    expect(seen.told).toMatchObject([{ format: 'rtf' }, { format: 'html' }])
  })

  test.each([
    ['files', FORMAT.FILES],
    ['dib', FORMAT.DIB],
    ['format 32', 32],
    ['format 32768', 0x8000],
  ])('%s do not pass whatever the rights, and are told of once', (name, format) => {
    const { guard, seen } = guardWith(BOTH)
    const data = Buffer.from('secret')
    const alone = encodeClipboard({ action: 'provide', items: new Map([[format, data]]) })
    expect(guard.extended('down', alone.flags, alone.body)).toBeUndefined()
    const text = [FORMAT.TEXT, Buffer.from('a\0')] as const
    const both = encodeClipboard({ action: 'provide', items: new Map([text, [format, data]]) })
    const rest = encodeClipboard({ action: 'provide', items: new Map([text]) })
    expect(guard.extended('down', both.flags, both.body)).toEqual(rest)
    expect(guard.extended('down', ACTION.NOTIFY | format, Buffer.alloc(0))).toBeUndefined()
    expect(guard.extended('up', ACTION.REQUEST | format, Buffer.alloc(0))).toBeUndefined()
    expect(seen.told).toHaveLength(1)
    expect(seen.denied).toEqual([`VNC_CLIPBOARD_DOWN: the clipboard does not pass ${name} on`])
  })

  test('that are announced are those that pass, with their sizes', () => {
    const { guard } = guardWith(BOTH)
    const actions = ACTION.PROVIDE | ACTION.NOTIFY
    const caps = encodeClipboard({ action: 'caps', formats: ALL, actions, sizes: [1, 2, 3, 4, 5, 6] })
    const formats = FORMAT.TEXT | FORMAT.RTF | FORMAT.HTML
    const passed = encodeClipboard({ action: 'caps', formats, actions, sizes: [1, 2, 3] })
    expect(guard.extended('down', caps.flags, caps.body)).toEqual(passed)
  })

  test('bring nothing along: neither behind the data nor behind what is compressed, nor in other bits', () => {
    const { guard } = guardWith(BOTH)
    const { flags, body } = provided('a')
    const trailed = deflateSync(Buffer.concat([Buffer.from('\0\0\0\x02a\0'), Buffer.from('secret')]))
    for (const sent of [trailed, Buffer.concat([body, Buffer.from('secret')])])
      expect(guard.extended('up', flags | (1 << 20), sent)).toEqual({ flags, body })
    const asked = { flags: ACTION.REQUEST | FORMAT.TEXT, body: Buffer.alloc(0) }
    expect(guard.extended('up', asked.flags | (1 << 20), Buffer.from('secret'))).toEqual(asked)
  })
})

test('what is no UTF-8 has the digest of its bytes', () => {
  const { guard, seen } = guardWith(BOTH)
  for (const byte of [0x80, 0x81]) {
    const items = new Map([[FORMAT.HTML, Buffer.of(byte)]])
    const { flags, body } = encodeClipboard({ action: 'provide', items })
    guard.extended('up', flags, body)
  }
  expect(seen.told).toMatchObject([
    { size: 1, sha256: hash('sha256', Buffer.of(0x80)) },
    { size: 1, sha256: hash('sha256', Buffer.of(0x81)) },
  ])
})

test('classic texts pass by their right, and are told once while they stay the same', () => {
  const { guard, seen } = guardWith(BOTH, true)
  expect(guard.passesText('up', Buffer.from('no'))).toBe(false)
  for (let at = 0; at < 3; at++) expect(guard.passesText('down', Buffer.from('caf\xe9', 'latin1'))).toBe(true)
  expect(seen.recorded).toEqual([{ direction: 'down', format: 'text', size: 5, text: 'café' }])
  expect(seen.denied).toEqual(['VNC_CLIPBOARD_UP: the session is for viewing only'])
})

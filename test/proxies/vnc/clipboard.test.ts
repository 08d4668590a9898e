import { Buffer } from 'node:buffer'
import { deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { ClipboardGuard } from '../../../proxies/vnc/clipboard.ts'
import { ACTION, FORMAT } from '../../../proxies/vnc/codec/clipboard.ts'
import type { Right } from '../../../src/model/rights.ts'
import { encodeClipboard } from './codec/encoders.ts'

const MIB = 2 ** 20
const BOTH: Right[] = ['VNC', 'VNC_CLIPBOARD_UP', 'VNC_CLIPBOARD_DOWN']

function guardWith(rights: Right[], isViewOnly = false) {
  const seen = {
    told: [] as unknown[],
    denied: [] as string[],
    recorded: [] as { direction: string; bytes: number; text: string | undefined }[],
    time: 0,
  }
  const guard = new ClipboardGuard({
    rights: new Set(rights),
    isViewOnly,
    uses: () => undefined,
    tell: (fields) => seen.told.push(fields),
    denied: (right, reason) => seen.denied.push(`${right}: ${reason}`),
    record: (direction, bytes, text) => seen.recorded.push({ direction, bytes, text }),
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
    expect(guard.passesExtended('up', flags, body)).toBe(true)
    expect(seen.recorded).toEqual([{ direction: 'up', bytes: 11, text: 'zwei\nZeilen' }])
    expect(guard.passesExtended('up', flags, body)).toBe(true)
    expect(seen.recorded).toHaveLength(1)
    expect(seen.told).toHaveLength(1)
  })

  test('is not looked into where the right is missing: what cannot be read is no fault there', () => {
    const { guard, seen } = guardWith(['VNC', 'VNC_CLIPBOARD_DOWN'])
    const flags = ACTION.PROVIDE | FORMAT.TEXT
    expect(guard.passesExtended('up', flags, Buffer.from('not zlib'))).toBe(false)
    expect(guard.passesExtended('up', flags, Buffer.from('neither'))).toBe(false)
    expect(seen.denied).toEqual(['VNC_CLIPBOARD_UP: the right is missing'])
    expect(() => guard.passesExtended('down', flags, Buffer.from('not zlib'))).toThrow('vnc:')
  })

  test('is inflated for as many bytes as its direction has, and what comes then does not pass', () => {
    const { guard, seen } = guardWith(BOTH)
    const flags = ACTION.PROVIDE | FORMAT.TEXT
    const size = 7 * MIB
    const passes = (byte: number) => guard.passesExtended('down', flags, bombOf(size, byte))
    expect([1, 2, 3, 4, 5].map(passes)).toEqual([true, true, true, false, false])
    expect(seen.recorded.map(({ bytes }) => bytes)).toEqual([size, size, size])
    for (const { text } of seen.recorded) expect(text!.length).toBeLessThanOrEqual(256 * 1024)
    expect(seen.denied).toEqual(['VNC_CLIPBOARD_DOWN: too much data in too short a time'])
    // The other direction has its own, and time gives more of it.
    expect(guard.passesExtended('up', flags, provided('text').body)).toBe(true)
    seen.time += 4_000
    expect(passes(5)).toBe(false)
    seen.time += 4_000
    expect(passes(5)).toBe(true)
  })
})

test('classic texts pass by their right, and are told once while they stay the same', () => {
  const { guard, seen } = guardWith(BOTH, true)
  expect(guard.passesText('up', Buffer.from('no'))).toBe(false)
  for (let at = 0; at < 3; at++) expect(guard.passesText('down', Buffer.from('caf\xe9', 'latin1'))).toBe(true)
  expect(seen.recorded).toEqual([{ direction: 'down', bytes: 5, text: 'café' }])
  expect(seen.denied).toEqual(['VNC_CLIPBOARD_UP: the session is for viewing only'])
})

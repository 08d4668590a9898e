/** Records of accounting: each fits into one request whatever the audit log holds, and any reply is read or refused in words. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { attributesOf } from '../../src/accounting/radius.ts'
import { type AccountingRecord, recordOf } from '../../src/accounting/record.ts'
import { bodyOf } from '../../src/accounting/tacacs.ts'
import type { StoredEvent } from '../../src/audit/chain.ts'
import { MAX_VALUE, writeAccounting } from '../../src/identity/methods/radius/packet.ts'
import { classesOf } from '../../src/identity/methods/radius/person.ts'
import { readAccountingReply } from '../../src/identity/methods/tacacs/messages.ts'
import { TacacsError } from '../../src/identity/methods/tacacs/packet.ts'
import { times } from '../times.ts'

const RUNS = { numRuns: times(500, 50_000) }
const NOW = 1_800_000_000_000
const secret = Buffer.from('lab-secret')
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 400 }),
  fc.constantFrom('', 'a\r\nUser-Name = root', '\u2028', '\ud800', 'ü'.repeat(300), 'cmd=x'),
)
const number = fc.oneof(
  fc.nat(),
  fc.constantFrom(0, -1, 2 ** 32, 2 ** 52, Number.MAX_SAFE_INTEGER, Number.NaN, 1.5),
)
const class_ = fc.uint8Array({ maxLength: 300 })
const event = fc.record({
  code: fc.constantFrom('session.open', 'session.close', 'command', 'service.start', 'service.stop'),
  time: fc.oneof(fc.nat(), fc.constantFrom(0, NOW, NOW + 60_000)),
  fields: fc.record(
    {
      session: text,
      user: text,
      client_ip: text,
      protocol: text,
      account: text,
      domain: text,
      device: text,
      service: text,
      object: text,
      result: text,
      reason: text,
      duration: number,
      bytes_in: number,
      bytes_out: number,
    },
    { requiredKeys: [] },
  ),
})
/** Records as they come of events, with what the broker adds. */
const record = fc
  .record({ event, classes: fc.array(class_, { maxLength: 40 }), octets: fc.tuple(number, number) })
  .map(({ event, classes, octets: [bytesIn, bytesOut] }): AccountingRecord[] => {
    const found = recordOf({ sequence: 1, ...event } as unknown as StoredEvent)
    if (!found) return []
    const octets = { bytesIn: Math.max(0, bytesIn || 0), bytesOut: Math.max(0, bytesOut || 0) }
    return [{ ...found, classes }, ...(found.session === '' ? [] : [interim(found, octets)])]
  })
const interim = (
  found: AccountingRecord,
  octets: { bytesIn: number; bytesOut: number },
): AccountingRecord => {
  const { session, user, source, protocol, target, time } = found
  return { session, user, source, protocol, target, time, kind: 'interim', elapsed: 60_000, octets }
}
const CONTROL = /[\p{Cc}\p{Zl}\p{Zp}]/u

test('a RADIUS request holds them, and reads as attributes', () => {
  fc.assert(
    fc.property(record, (records) => {
      for (const one of records) {
        if (one.kind === 'command') continue
        const longest = { type: 32, value: Buffer.alloc(MAX_VALUE, 'n') }
        const attributes = [longest, ...attributesOf(one, NOW)]
        const packet = writeAccounting({ code: 4, id: 1, attributes }, secret)
        expect(packet.readUInt16BE(2)).toBe(packet.length)
        const texts = attributes.filter(({ type }) => [1, 30, 31, 44, 77].includes(type))
        for (const { value } of texts) expect(Buffer.from(value).toString()).not.toMatch(CONTROL)
        for (const { type, value } of attributes)
          if ([40, 41, 42, 43, 46, 49, 52, 53, 55].includes(type)) expect(value).toHaveLength(4)
      }
    }),
    RUNS,
  )
})

test('a TACACS+ body holds them, and no value breaks a line', () => {
  fc.assert(
    fc.property(record, (records) => {
      for (const one of records) {
        if (one.kind === 'on' || one.kind === 'off') continue
        const body = bodyOf(one as Parameters<typeof bodyOf>[0])
        const [user = 0, port = 0, source = 0, count = 0] = body.subarray(5, 9)
        const lengths = [...body.subarray(9, 9 + count)]
        const sum = lengths.reduce((all, length) => all + length, 9 + count + user + port + source)
        expect(body).toHaveLength(sum)
        expect(body.subarray(9 + count).toString()).not.toMatch(CONTROL)
      }
    }),
    RUNS,
  )
})

test('Class of any accept is kept whole, in order and within its limit', () => {
  fc.assert(
    fc.property(fc.array(class_, { maxLength: 40 }), (values) => {
      const kept = classesOf(values.map((value) => ({ type: 25, value })))
      expect(kept).toEqual(values.slice(0, kept.length))
      expect(kept.reduce((sum, { length }) => sum + length + 2, 0)).toBeLessThanOrEqual(2048)
    }),
    RUNS,
  )
})

test('any reply of a TACACS+ server is read or refused in words', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
      try {
        expect(['success', 'error', 'follow']).toContain(readAccountingReply(Buffer.from(bytes)).status)
      } catch (error) {
        expect(error).toBeInstanceOf(TacacsError)
      }
    }),
    RUNS,
  )
})

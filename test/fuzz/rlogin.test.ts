/** Rlogin from a peer that sends anything: an answer or the one error, the same wherever chunks end. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { ClientStream } from '../../proxies/rlogin/codec/client-stream.ts'
import { AnswerReader, HandshakeReader } from '../../proxies/rlogin/codec/handshake.ts'
import { ServerStream } from '../../proxies/rlogin/codec/server-stream.ts'
import { cut, type Event, hex, keep } from '../proxies/stream-events.ts'

const RUNS = { numRuns: 3_000 }
const bytes = fc
  .array(fc.oneof({ weight: 3, arbitrary: fc.constantFrom(0, 0xff, 0x73, 0x2f, 0x80) }, fc.nat(255)), {
    maxLength: 200,
  })
  .map((numbers) => Uint8Array.from(numbers))
const places = fc.array(fc.nat(200), { maxLength: 8 })

function handshakeOf(chunks: Uint8Array[]): unknown {
  const reader = new HandshakeReader()
  for (const [index, chunk] of chunks.entries()) {
    try {
      const found = reader.feed(chunk)
      if (!found) continue
      const rest = Buffer.concat([found.rest, ...chunks.slice(index + 1)])
      return { handshake: found.handshake, rest: hex(rest) }
    } catch (error) {
      expect(error).toBeInstanceOf(MalformedError)
      return (error as Error).message
    }
  }
  return undefined
}

test('the handshake', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(bytes, places, fc.boolean(), (sent, ends, isLikely) => {
      const all = isLikely ? Buffer.concat([Buffer.alloc(1), sent]) : sent
      const whole = handshakeOf([all])
      expect(handshakeOf(cut(all, ends))).toEqual(whole)
      seen.add(typeof whole)
    }),
    RUNS,
  )
  // All three results occurred: more is needed, an error, a handshake.
  expect(seen).toEqual(new Set(['undefined', 'string', 'object']))
})

test('the answer', () => {
  const answerOf = (chunks: Uint8Array[]) => {
    const reader = new AnswerReader()
    for (const [index, chunk] of chunks.entries()) {
      const rest = reader.feed(chunk)
      if (rest) return hex(Buffer.concat([rest, ...chunks.slice(index + 1)]))
    }
    return { refusal: reader.refusal }
  }
  fc.assert(
    fc.property(bytes, places, (sent, ends) => {
      expect(answerOf(cut(sent, ends))).toEqual(answerOf([sent]))
    }),
    RUNS,
  )
})

test('keys and windows', () => {
  const eventsOf = (chunks: Uint8Array[]) => {
    const events: Event[] = []
    const stream = new ClientStream({
      data: (data) => keep(events, 'data', hex(data)),
      windowSize: (size) => keep(events, 'windowSize', size),
    })
    for (const chunk of chunks) stream.feed(chunk)
    stream.release()
    return events
  }
  let windows = 0
  const parts = fc
    .array(fc.oneof(bytes, fc.constant(Uint8Array.of(0xff, 0xff, 0x73, 0x73))), { maxLength: 6 })
    .map((all) => Uint8Array.from(Buffer.concat(all)))
  fc.assert(
    fc.property(parts, places, (sent, ends) => {
      const whole = eventsOf([sent])
      expect(eventsOf(cut(sent, ends))).toEqual(whole)
      windows += whole.filter(([kind]) => kind === 'windowSize').length
    }),
    RUNS,
  )
  expect(windows).toBeGreaterThan(100)
})

test('output and control bytes: all of it is one or the other, a control byte only where a read begins', () => {
  const read = fc.record({
    bytes: fc.oneof(
      bytes,
      fc
        .constantFrom('\x80', '\x80text', '\x90', 'ö', '€', '\xe2')
        .map((text) => Buffer.from(text, 'latin1')),
      fc.string({ unit: 'grapheme', maxLength: 5 }).map((text) => Buffer.from(text)),
    ),
    isUrgent: fc.boolean(),
  })
  let controls = 0
  fc.assert(
    fc.property(fc.array(read, { maxLength: 12 }), (reads) => {
      const events: Event[] = []
      const stream = new ServerStream({
        data: (data) => events.push(['data', hex(data)]),
        control: (byte) => events.push(['control', byte]),
      })
      for (const { bytes, isUrgent } of reads) {
        events.length = 0
        stream.feed(bytes, isUrgent)
        const told = events.map(([kind, value]) =>
          kind === 'control' ? hex(Uint8Array.of(value as number)) : value,
        )
        expect(told.join('')).toBe(hex(bytes))
        const places = events.flatMap(([kind], index) => (kind === 'control' ? [index] : []))
        expect(places.every((place) => place === 0)).toBe(true)
        controls += places.length
      }
    }),
    RUNS,
  )
  expect(controls).toBeGreaterThan(100)
})

test('text in UTF-8 that nothing marks as urgent is text, however it is cut', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), places, (text, ends) => {
      let shown = ''
      const stream = new ServerStream({
        data: (data) => {
          shown += hex(data)
        },
        control: () => {
          shown += '<control>'
        },
      })
      for (const piece of cut(Buffer.from(text), ends)) stream.feed(piece, false)
      expect(shown).toBe(hex(Buffer.from(text)))
    }),
    RUNS,
  )
})

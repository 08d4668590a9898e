import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../../../proxies/bytes/malformed.ts'
import { SUBNEGOTIATION_LIMIT, TelnetDecoder } from '../../../../proxies/telnet/codec/decoder.ts'
import {
  buildCommand,
  buildNegotiation,
  buildSubnegotiation,
  escapeData,
} from '../../../../proxies/telnet/codec/encoder.ts'
import { COMMAND, OPTION } from '../../../../proxies/telnet/codec/numbers.ts'
import { cut, type Event, hex, keep } from '../../stream-events.ts'

const { IAC, SB, SE, IP, DM, WILL, WONT, DO, DONT, NOP, GA, EOR } = COMMAND
const text = (value: string) => Buffer.from(value, 'latin1').toString('hex')

function decoded(...chunks: Uint8Array[]): Event[] {
  const events: Event[] = []
  const decoder = new TelnetDecoder({
    data: (bytes) => keep(events, 'data', hex(bytes)),
    command: (code) => keep(events, 'command', code),
    negotiation: (verb, option) => keep(events, 'negotiation', verb, option),
    subnegotiation: (option, body) => keep(events, 'subnegotiation', option, hex(body)),
  })
  for (const chunk of chunks) decoder.feed(chunk)
  return events
}

describe('what stands in a stream', () => {
  test.each<[string, number[], Event[]]>([
    ['text', [0x68, 0x69], [['data', '6869']]],
    ['a doubled IAC is one byte of data', [0x61, IAC, IAC, 0x62], [['data', '61ff62']]],
    ['three doubled', [IAC, IAC, IAC, IAC, IAC, IAC], [['data', 'ffffff']]],
    [
      'a command within text',
      [0x61, IAC, IP, 0x62],
      [
        ['data', '61'],
        ['command', IP],
        ['data', '62'],
      ],
    ],
    [
      'every verb',
      [WILL, WONT, DO, DONT].flatMap((verb) => [IAC, verb, OPTION.ECHO]),
      [
        ['negotiation', WILL, OPTION.ECHO],
        ['negotiation', WONT, OPTION.ECHO],
        ['negotiation', DO, OPTION.ECHO],
        ['negotiation', DONT, OPTION.ECHO],
      ],
    ],
    [
      'option 255 is no IAC',
      [IAC, DO, IAC, 0x61],
      [
        ['negotiation', DO, 255],
        ['data', '61'],
      ],
    ],
    [
      'a subnegotiation',
      [IAC, SB, OPTION.NAWS, 0, 80, 0, 24, IAC, SE],
      [['subnegotiation', OPTION.NAWS, '00500018']],
    ],
    [
      'a doubled IAC in one',
      [IAC, SB, OPTION.NAWS, 0, IAC, IAC, 0, 24, IAC, SE],
      [['subnegotiation', OPTION.NAWS, '00ff0018']],
    ],
    [
      'an empty one',
      [IAC, SB, OPTION.TTYPE, IAC, SE, 0x61],
      [
        ['subnegotiation', OPTION.TTYPE, ''],
        ['data', '61'],
      ],
    ],
    [
      'one whose end was forgotten gives way to the next command',
      [IAC, SB, OPTION.TTYPE, 0, 0x78, IAC, DO, OPTION.ECHO, 0x61],
      [
        ['negotiation', DO, OPTION.ECHO],
        ['data', '61'],
      ],
    ],
    ['one after the other', [IAC, SB, 1, 2, IAC, SB, 3, 4, IAC, SE], [['subnegotiation', 3, '04']]],
    [
      'nothing of what means nothing',
      [0x61, IAC, GA, 0x62, IAC, NOP, IAC, EOR, IAC, SE, 0x63],
      [['data', '616263']],
    ],
    [
      'a Synch',
      [IAC, DM, 0x61],
      [
        ['command', DM],
        ['data', '61'],
      ],
    ],
    ['nothing yet of a half', [0x61, IAC], [['data', '61']]],
  ])('%s', (_, bytes, events) => expect(decoded(Uint8Array.from(bytes))).toEqual(events))

  test('data of one chunk is told at once, however many of its bytes are doubled', () => {
    const told: number[] = []
    const decoder = new TelnetDecoder({
      data: (bytes) => told.push(bytes.length),
      command: () => undefined,
      negotiation: () => undefined,
      subnegotiation: () => undefined,
    })
    decoder.feed(escapeData(Buffer.alloc(1000, IAC)))
    expect(told).toEqual([1000])
  })
})

describe('limits', () => {
  const begin = Uint8Array.of(IAC, SB, OPTION.NEW_ENVIRON)
  const end = Uint8Array.of(IAC, SE)

  test('the longest subnegotiation is taken', () => {
    const events = decoded(begin, Buffer.alloc(SUBNEGOTIATION_LIMIT, 0x61), end)
    expect(events).toEqual([['subnegotiation', OPTION.NEW_ENVIRON, '61'.repeat(SUBNEGOTIATION_LIMIT)]])
  })

  test.each([
    ['in one piece', [Buffer.alloc(SUBNEGOTIATION_LIMIT + 1, 0x61)]],
    ['byte by byte', Array.from({ length: SUBNEGOTIATION_LIMIT + 1 }, () => Uint8Array.of(0x61))],
    ['of doubled bytes', [escapeData(Buffer.alloc(SUBNEGOTIATION_LIMIT + 1, IAC))]],
  ])('a longer one is refused, %s', (_, pieces) => {
    expect(() => decoded(begin, ...pieces)).toThrow(MalformedError)
  })
})

/** Any message, as event and as bytes. */
const said = fc.oneof(
  fc
    .uint8Array({ minLength: 1, maxLength: 20 })
    .map((bytes) => ({ event: ['data', hex(bytes)] as Event, bytes: escapeData(bytes) })),
  fc
    .oneof(fc.integer({ min: 0, max: 238 }), fc.constantFrom(IP, DM))
    .map((code) => ({ event: ['command', code] as Event, bytes: buildCommand(code) })),
  fc.tuple(fc.constantFrom(WILL, WONT, DO, DONT), fc.nat(255)).map(([verb, option]) => ({
    event: ['negotiation', verb, option] as Event,
    bytes: buildNegotiation(verb, option),
  })),
  fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 20 })).map(([option, body]) => ({
    event: ['subnegotiation', option, hex(body)] as Event,
    bytes: buildSubnegotiation(option, body),
  })),
)

test('what is built is read again, wherever the chunks end', () => {
  fc.assert(
    fc.property(fc.array(said, { maxLength: 12 }), fc.array(fc.nat(400)), (all, places) => {
      const expected: Event[] = []
      for (const { event } of all) keep(expected, ...event)
      expect(decoded(...cut(Buffer.concat(all.map(({ bytes }) => bytes)), places))).toEqual(expected)
    }),
    { numRuns: 2_000 },
  )
})

test('data without IAC is not copied', () => {
  const bytes = Buffer.from(text('plain'), 'hex')
  expect(escapeData(bytes)).toBe(bytes)
})

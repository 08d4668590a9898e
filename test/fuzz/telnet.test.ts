/**
 * Telnet from a peer that sends anything: events or the one error, the same wherever chunks end, with bounded
 * answers.
 */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { buildNegotiation, buildSubnegotiation } from '../../proxies/telnet/codec/encoder.ts'
import { CONTROL_BURST } from '../../proxies/telnet/codec/endpoint.ts'
import { COMMAND, OPTION } from '../../proxies/telnet/codec/numbers.ts'
import { cut, type Event } from '../proxies/stream-events.ts'
import { createEndpoint } from '../proxies/telnet/codec/pair.ts'

const option = fc.constantFrom(...Object.values(OPTION))
const verb = fc.constantFrom(COMMAND.WILL, COMMAND.WONT, COMMAND.DO, COMMAND.DONT)
const number = fc.oneof(
  fc.constantFrom(...Object.values(COMMAND)),
  fc.constantFrom(0, 1, 2, 3, 10, 13),
  fc.nat(255),
)
const numbers = (maxLength: number) => fc.array(number, { maxLength }).map((list) => Uint8Array.from(list))
/** Whole parts of the protocol, with random content, and random bytes. */
const bytes = fc
  .array(
    fc.oneof(
      fc.tuple(verb, option).map(([say, about]) => buildNegotiation(say, about)),
      option.map((about) => buildNegotiation(COMMAND.WILL, about)),
      fc.tuple(option, numbers(8)).map(([about, body]) => buildSubnegotiation(about, body)),
      numbers(6),
    ),
    { maxLength: 30 },
  )
  .map((parts) => Uint8Array.from(Buffer.concat(parts)))
const places = fc.array(fc.nat(400), { maxLength: 12 })

/** Returns the result: events, bytes, and the error that ends it. */
function outcome(
  role: 'server' | 'client',
  chunks: Uint8Array[],
): { events: Event[]; written: Buffer; error: string | undefined } {
  const { endpoint, events, written } = createEndpoint(role, {
    terminalType: 'xterm',
    windowSize: { columns: 80, rows: 24 },
  })
  endpoint.start()
  let error: string | undefined
  try {
    for (const chunk of chunks) endpoint.receive(chunk)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(MalformedError)
    error = (thrown as Error).message
  }
  return { events, written: written(), error }
}

describe.each(['server', 'client'] as const)('as %s', (role) => {
  test('the same wherever chunks end, and never more than a few bytes for each of the peer’s', () => {
    let refused = 0
    fc.assert(
      fc.property(bytes, places, (sent, ends) => {
        const whole = outcome(role, [sent])
        // Text before an error may or may not have been reported if it is in the same chunk.
        const pieces = outcome(role, cut(sent, ends))
        if (whole.error === undefined) expect(pieces).toEqual(whole)
        else expect(pieces.error).toBe(whole.error)
        if (whole.error !== undefined) refused += 1
        expect(whole.written.length).toBeLessThanOrEqual(24 + sent.length * 6)
      }),
      { numRuns: 3_000 },
    )
    // Both outcomes occurred.
    if (role === 'server') expect(refused).toBeGreaterThan(10)
  })

  /**
   * Messages that no option explains, such as WILL and WONT at once, can circulate between two correct peers:
   * then the cap has to end it.
   */
  test('two of ours come to rest whatever has come before, or one of them ends it', () => {
    fc.assert(
      fc.property(bytes, (sent) => {
        const one = createEndpoint(role)
        const other = createEndpoint(role === 'server' ? 'client' : 'server')
        try {
          one.endpoint.receive(sent)
          one.endpoint.start()
          other.endpoint.start()
          for (let round = 0; round <= CONTROL_BURST; round++) {
            const said = one.written()
            const answered = other.written()
            if (said.length === 0 && answered.length === 0) return
            other.endpoint.receive(said)
            one.endpoint.receive(answered)
          }
        } catch (error) {
          expect(error).toBeInstanceOf(MalformedError)
          return
        }
        throw new Error('they talk without end')
      }),
      { numRuns: 1_000 },
    )
  })
})

test('data comes out as it went in, of any bytes', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), places, (sent, ends) => {
      const { endpoint, written } = createEndpoint('server')
      for (const piece of cut(sent, ends)) endpoint.send(piece)
      const client = createEndpoint('client')
      client.endpoint.receive(written())
      const text = Buffer.from(sent).toString('latin1')
      expect(client.events).toEqual(text === '' ? [] : [['data', text]])
    }),
    { numRuns: 2_000 },
  )
})

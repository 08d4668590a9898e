/** Bytes of any kind from the other side of the workers' boundary: messages or the one error, wherever pieces end. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MessageReader } from '../../src/contract/message-reader.ts'
import { encodeMessage, WireError } from '../../src/contract/wire.ts'
import { BreachError, messageOf, requestOf } from '../../src/workers/requests.ts'
import { EVERY_MESSAGE } from './messages.ts'

const RUNS = 20_000
const WHOLE = EVERY_MESSAGE.map((message) => Buffer.concat(encodeMessage(message)))

/** Returns the messages and the error that ends them. */
function outcome(pieces: Buffer[]): { messages: string[]; error: string | undefined } {
  const reader = new MessageReader()
  const messages: unknown[] = []
  try {
    for (const piece of pieces) messages.push(...reader.read(piece))
  } catch (error) {
    expect(error).toBeInstanceOf(WireError)
    return { messages: messages.map(judged), error: (error as Error).message }
  }
  return { messages: messages.map(judged), error: undefined }
}

/** Returns what the broker makes of a message: the request, or the breach. Any other error fails the test. */
function judged(message: unknown): string {
  try {
    const said = messageOf(message)
    if (said.type === 'ask') requestOf(said.method, said.request)
    return JSON.stringify(said)
  } catch (error) {
    expect(error).toBeInstanceOf(BreachError)
    return (error as Error).message
  }
}

function cut(bytes: Buffer, places: number[]): Buffer[] {
  const at = places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b)
  return [0, ...at].map((begin, i) => bytes.subarray(begin, at[i] ?? bytes.length))
}

const whole = fc.constantFrom(...WHOLE)
const noise = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes))
/** A message with some of its bytes changed. */
const changed = fc
  .tuple(whole, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 4 }))
  .map(([bytes, changes]) => {
    const copy = Buffer.from(bytes)
    // The first byte of a length would only make it too long, or wait for more.
    for (const [place, byte] of changes) copy[2 + (place % (copy.length - 2))] = byte
    return copy
  })
const json = fc.json({ maxDepth: 4 }).map((text) => {
  const bytes = Buffer.from(text)
  const head = Buffer.alloc(8)
  head.writeUInt32BE(4 + bytes.length, 0)
  head.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([head, bytes])
})
const stream = fc
  .array(fc.oneof(whole, { weight: 3, arbitrary: changed }, json, { weight: 1, arbitrary: noise }), {
    maxLength: 4,
  })
  .map((parts) => Buffer.concat(parts))

test('never any error but one, and the same wherever pieces end', () => {
  const seen = { messages: 0, errors: 0 }
  fc.assert(
    fc.property(stream, fc.array(fc.nat(), { maxLength: 6 }), (bytes, places) => {
      const inPieces = outcome(cut(bytes, places))
      const atOnce = outcome([bytes])
      // At once the messages before the error are lost with it: after one the worker is ended.
      if (atOnce.error === undefined) expect(inPieces).toEqual(atOnce)
      else expect(inPieces.error).toBe(atOnce.error)
      seen.messages += inPieces.messages.length
      if (inPieces.error !== undefined) seen.errors++
    }),
    { numRuns: RUNS },
  )
  expect(seen.messages).toBeGreaterThan(RUNS / 2)
  expect(seen.errors).toBeGreaterThan(RUNS / 50)
})

test('any value with byte arrays comes out as it went in', () => {
  const leaf = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.double({ noDefaultInfinity: true, noNaN: true }).map((number) => number + 0),
    fc.boolean(),
    fc.constant(null),
    fc.uint8Array({ maxLength: 30 }),
  )
  const value = fc.letrec<{ any: unknown }>((tie) => ({
    any: fc.oneof(
      { maxDepth: 5, withCrossShrink: true },
      leaf,
      fc.array(tie('any'), { maxLength: 4 }),
      fc.dictionary(
        fc.string({ maxLength: 6 }).filter((name) => name !== '$bytes' && name !== '__proto__'),
        tie('any'),
        {
          maxKeys: 5,
          noNullPrototype: true,
        },
      ),
    ),
  })).any
  fc.assert(
    fc.property(value, (one) => {
      const [out] = new MessageReader().read(Buffer.concat(encodeMessage({ one })))
      expect(plain((out as { one: unknown }).one)).toEqual(plain(one))
    }),
    { numRuns: RUNS / 4 },
  )
})

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return Object.is(value, -0) ? 0 : value
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one)]))
}

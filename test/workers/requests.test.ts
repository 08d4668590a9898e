/** The schemas of workers' requests: all that an honest worker sends, and nothing else. */
import { Buffer } from 'node:buffer'
import type { Static } from 'typebox'
import { describe, expect, expectTypeOf, test } from 'vitest'
import { FRAME } from '../../recordings/container/frames.ts'
import { MAX_APPEND, MAX_APPEND_PARTS } from '../../recordings/container/recording-file.ts'
import { MAX_SCREEN_COLUMNS, MAX_SCREEN_LINES } from '../../src/contract/gate.ts'
import { MessageReader } from '../../src/contract/message-reader.ts'
import type { GateMethod, GateRequest } from '../../src/contract/worker.ts'
import { RIGHTS } from '../../src/model/rights.ts'
import { BreachError, messageOf, REQUESTS, requestOf } from '../../src/workers/requests.ts'
import { EVERY_MESSAGE, EVERY_REQUEST } from '../contract/messages.ts'

const METHODS = Object.keys(REQUESTS) as GateMethod[]
const MIB = 1024 * 1024

/** Returns the type with all of its fields changeable, as schemas have them. */
type Plain<T> = T extends Uint8Array
  ? Uint8Array
  : T extends readonly (infer One)[]
    ? Plain<One>[]
    : T extends object
      ? { -readonly [K in keyof T]: Plain<T[K]> }
      : T

test('every schema has the type of its request', () => {
  // The catalogue of events judges the code and the fields: see gate/proxy-events.ts.
  type Typed = Exclude<GateMethod, 'event'>
  expectTypeOf<{ [M in Typed]: Plain<Static<(typeof REQUESTS)[M]>> }>().toEqualTypeOf<{
    [M in Typed]: Plain<GateRequest<M>>
  }>()
  expectTypeOf<keyof Static<(typeof REQUESTS)['event']>>().toEqualTypeOf<keyof GateRequest<'event'>>()
})

describe.each(METHODS)('%s', (method) => {
  const requests: readonly object[] = EVERY_REQUEST[method]

  test('accepts each of its forms', () => {
    for (const request of requests) expect(requestOf(method, request)).toBe(request)
  })

  test('refuses a field that it does not know, at any depth, `__proto__` and `constructor` too', () => {
    for (const request of requests) {
      for (const place of objectsIn(request)) {
        for (const name of ['extra', '__proto__', 'constructor', 'toString', '']) {
          const changed = structuredClone(request)
          Object.defineProperty(at(changed, place), name, { value: 1, enumerable: true, writable: true })
          expect(() => requestOf(method, changed), `${place.join('.')} ${name}`).toThrow(BreachError)
        }
      }
    }
  })

  test('refuses each field with another type', () => {
    for (const request of requests) {
      for (const [place, name] of fieldsIn(request)) {
        const wrongs = [null, 1.5, -1, Number.NaN, [[]], Symbol('s'), () => 1]
        for (const wrong of wrongs) {
          const changed = structuredClone(request)
          ;(at(changed, place) as Record<string, unknown>)[name] = wrong
          expect(() => requestOf(method, changed), `${place.join('.')}.${name} ${String(wrong)}`).toThrow(
            BreachError,
          )
        }
      }
    }
  })

  test.each([null, undefined, 1, 'text', [], new Uint8Array(3), {}])('refuses %j in its place', (request) => {
    expect(() => requestOf(method, request)).toThrow(BreachError)
  })
})

const S = { session: 'S' }
const source = { address: '192.0.2.7', port: 1 }
const authenticate = { protocol: 'SSH', source, login: 'l', proof: { method: 'none' } }
const opening = { identity: 'T', protocol: 'SSH', source }
const close = { ...S, result: 'success', bytesIn: 0, bytesOut: 0, rightsUsed: [] }
const frame = { type: FRAME.output, channel: 0, time: 0, payload: Buffer.alloc(0), after: 0 }
const text = (length: number) => 'x'.repeat(length)
const zeros = (length: number) => new Uint8Array(length)
const list = <T>(length: number, one: T): T[] => new Array<T>(length).fill(one)
const events = (length: number) => Object.fromEntries(list(length, 0).map((_, i) => [`f${i}`, 'v']))

/** Each bound: a function from a size to a request, and the largest size. */
const BOUNDS: readonly [GateMethod, string, number, (size: number) => unknown][] = [
  ['authenticate', 'login', MIB, (n) => ({ ...authenticate, login: text(n) })],
  [
    'authenticate',
    'password',
    MIB,
    (n) => ({ ...authenticate, proof: { method: 'password', password: text(n) } }),
  ],
  ['authenticate', 'address', 64, (n) => ({ ...authenticate, source: { address: text(n), port: 1 } })],
  ['authenticate', 'port', 65_535, (port) => ({ ...authenticate, source: { address: 'a', port } })],
  ['authenticate', 'answers', 16, (n) => answers(list(n, 'a'))],
  ['authenticate', 'answer', MIB, (n) => answers([text(n)])],
  ['authenticate', 'challenge', 128, (n) => answers([], text(n))],
  ['authenticate', 'key', MIB, (n) => ({ ...authenticate, proof: { method: 'publickey', key: zeros(n) } })],
  [
    'authenticate',
    'response of a ticket',
    16,
    (n) => ({ ...authenticate, proof: { method: 'ticket', challenge: zeros(16), response: zeros(n) } }),
  ],
  ['targets', 'identity', 128, (n) => ({ identity: text(n), protocol: 'SSH' })],
  ['open', 'target', MIB, (n) => ({ identity: 'T', protocol: 'SSH', source, target: text(n) })],
  ['open', 'logon', MIB, (n) => ({ identity: 'T', protocol: 'SSH', source, logon: { password: text(n) } })],
  ['hostKey', 'key', MIB, (n) => ({ ...S, key: zeros(n) })],
  ['event', 'code', 64, (n) => ({ ...S, code: text(n), fields: {} })],
  ['event', 'fields', 32, (n) => ({ ...S, code: 'command', fields: events(n) })],
  ['denied', 'what', MIB, (n) => ({ identity: 'T', protocol: 'SSH', what: text(n), reason: '' })],
  ['sign', 'statement', 4096, (n) => ({ ...S, statement: zeros(n) })],
  ['close', 'reason', MIB, (n) => ({ ...close, reason: text(n) })],
  ['close', 'bytesIn', Number.MAX_SAFE_INTEGER, (bytesIn) => ({ ...close, bytesIn })],
  ['close', 'rightsUsed', RIGHTS.length, (n) => ({ ...close, rightsUsed: list(n, 'SSH_SHELL') })],
  ['live', 'payload', 4 * MIB, (n) => ({ ...S, frames: [{ ...frame, payload: zeros(n) }] })],
  ['live', 'channel', 0xffff_ffff, (channel) => ({ ...S, frames: [{ ...frame, channel }] })],
  ['live', 'frames', 16_384, (n) => ({ ...S, frames: list(n, frame) })],
  ['beginRecording', 'parts', MAX_APPEND_PARTS, (n) => ({ ...S, parts: list(n, zeros(1)) })],
  ['appendRecording', 'part', MAX_APPEND, (n) => ({ ...S, offset: 0, parts: [zeros(n)] })],
  ['appendRecording', 'offset', Number.MAX_SAFE_INTEGER, (offset) => ({ ...S, offset, parts: [] })],
  ['endRecording', 'session', 128, (n) => ({ session: text(n) })],
  ['open', 'comment', MIB, (n) => ({ ...opening, reason: { comment: text(n), ticket: '' } })],
  ['open', 'ticket', MIB, (n) => ({ ...opening, reason: { comment: '', ticket: text(n) } })],
  ['open', 'approval', 128, (n) => ({ ...opening, approval: text(n) })],
  ['askCommand', 'line', MIB, (n) => ({ ...S, ask: 1, line: text(n), rule: 'r', screen: [] })],
  ['askCommand', 'rule', MIB, (n) => ({ ...S, ask: 1, line: 'l', rule: text(n), screen: [] })],
  [
    'askCommand',
    'screen',
    MAX_SCREEN_LINES,
    (n) => ({ ...S, ask: 1, line: 'l', rule: 'r', screen: list(n, '') }),
  ],
  [
    'askCommand',
    'columns',
    MAX_SCREEN_COLUMNS,
    (n) => ({ ...S, ask: 1, line: 'l', rule: 'r', screen: [text(n)] }),
  ],
  ['withdraw', 'identity', 128, (n) => ({ identity: text(n), approval: 'A' })],
  ['withdraw', 'approval', 128, (n) => ({ identity: 'T', approval: text(n) })],
  ['leave', 'identity', 128, (n) => ({ identity: text(n) })],
]

function answers(given: string[], challenge = 'C'): unknown {
  return { ...authenticate, proof: { method: 'keyboard-interactive', challenge, answers: given } }
}

test.each(BOUNDS)('%s: %s is bounded at %d', (method, _field, most, requestWith) => {
  expect(() => requestOf(method, requestWith(most))).not.toThrow()
  expect(() => requestOf(method, requestWith(most + 1))).toThrow(BreachError)
})

test('an empty id names nothing', () => {
  expect(() => requestOf('leave', { identity: '' })).toThrow(BreachError)
})

test('the fields of an event that came with `__proto__` are no prototype', () => {
  const json = Buffer.from('{"session":"S","code":"command","fields":{"__proto__":{"user":"admin"}}}')
  const head = Buffer.alloc(8)
  head.writeUInt32BE(4 + json.length, 0)
  head.writeUInt32BE(json.length, 4)
  const [request] = new MessageReader().read(Buffer.concat([head, json]))
  const { fields } = requestOf('event', request)
  expect(Object.getPrototypeOf(fields)).toBe(Object.prototype)
  expect(Object.keys(fields)).toEqual(['__proto__'])
})

test('the reason of a breach does not show the value, which may be a secret', () => {
  const proof = { method: 'password', password: 'hunter2', extra: 'hunter2' }
  expect(() => requestOf('authenticate', { ...authenticate, proof })).toThrow(
    /^expected a request authenticate$/,
  )
})

describe('messages', () => {
  const fromWorker = new Set(['ready', 'ask', 'pong', 'closed', 'drained'])

  test('all of a worker’s are accepted, and none of the broker’s', () => {
    for (const message of EVERY_MESSAGE) {
      if (fromWorker.has(message.type)) expect(messageOf(message)).toBe(message)
      else expect(() => messageOf(message), message.type).toThrow(BreachError)
    }
  })

  test.each([
    [
      'a method that the gate has and workers have not',
      { type: 'ask', id: 1, method: 'onNotice', request: {} },
    ],
    ['a method of the broker', { type: 'ask', id: 1, method: 'kill', request: {} }],
    ['a method of every object', { type: 'ask', id: 1, method: 'constructor', request: {} }],
    ['a number that is none', { type: 'pong', number: -1, delayMs: 0 }],
    ['a pong without a delay', { type: 'pong', number: 1 }],
    ['a delay below zero', { type: 'pong', number: 1, delayMs: -1 }],
    ['a delay without an end', { type: 'pong', number: 1, delayMs: Number.POSITIVE_INFINITY }],
    ['a delay of more than an hour', { type: 'pong', number: 1, delayMs: 3_600_001 }],
    ['a number that is too large', { type: 'closed', connection: 2 ** 53 }],
    ['another field', { type: 'drained', sessions: 0 }],
    ['another type', { type: 'answer', id: 1, answer: {} }],
    ['nothing', null],
    ['a list', [{ type: 'drained' }]],
    ['bytes', new Uint8Array(4)],
  ])('%s is a breach', (_what, message) => {
    expect(() => messageOf(message)).toThrow(BreachError)
  })
})

type Place = readonly (string | number)[]

/** Returns the places of all objects with named fields. Those of an event are the catalogue's. */
function objectsIn(value: object): Place[] {
  const inside = Object.entries(value).flatMap(([key, one]) =>
    typeof one === 'object' && one !== null && !(one instanceof Uint8Array) && key !== 'fields'
      ? objectsIn(one as object).map((place) => [key, ...place])
      : [],
  )
  return Array.isArray(value) ? inside : [[], ...inside]
}

function fieldsIn(value: object): [Place, string][] {
  return objectsIn(value).flatMap((place) =>
    Object.keys(at(value, place)).map((name): [Place, string] => [place, name]),
  )
}

function at(value: object, place: Place): object {
  return place.reduce<object>((inner, key) => (inner as Record<string | number, object>)[key]!, value)
}

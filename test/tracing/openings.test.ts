import { Buffer } from 'node:buffer'
import { beforeEach, expect, test } from 'vitest'
import type { Step } from '../../src/gate/steps.ts'
import { Openings } from '../../src/tracing/openings.ts'
import { exportRequest, traceIdOf } from '../../src/tracing/otlp.ts'

const SESSION = '01JDSESS10N0000000000000AB'
const source = { address: '192.0.2.7', port: 4711 }

let openings: Openings
beforeEach(() => {
  openings = new Openings()
})

const step = (name: Step['name'], begin: number, end: number, more: Partial<Step>): Step => ({
  name,
  begin,
  end,
  result: 'opened',
  protocol: 'SSH',
  ...more,
})
function open(identity: string, session: string): void {
  openings.arrived(source, 100)
  openings.add(step('sign_in', 300, 350, { result: 'accepted', identity, source }))
  openings.add(step('credential', 410, 420, { identity, session }))
  openings.add(step('authorization', 400, 450, { identity, session, source }))
  openings.add(step('recording_open', 460, 470, { session }))
  openings.add(step('target_connect', 450, 800, { result: 'connected', session }))
}

test('an opening is one trace, complete a moment after the target is there', () => {
  open('token', SESSION)
  expect(openings.take(1799)).toEqual([])
  const [trace, ...rest] = openings.take(1800)
  expect(rest).toEqual([])
  expect(trace).toMatchObject({ session: SESSION, protocol: 'SSH', result: 'connected' })
  expect(trace?.spans.map(({ name, begin, end }) => [name, begin, end])).toEqual([
    ['accept', 100, 300],
    ['sign_in', 300, 350],
    ['credential', 410, 420],
    ['authorization', 400, 450],
    ['recording_open', 460, 470],
    ['target_connect', 450, 800],
  ])
  expect(openings.take(9999)).toEqual([])
})

test('the next session of the same client is another trace', () => {
  open('token', SESSION)
  openings.add(step('authorization', 900, 950, { identity: 'token', session: 'second' }))
  openings.add(step('target_connect', 950, 990, { result: 'connected', session: 'second' }))
  const traces = openings.take(0, true)
  expect(traces.map(({ session, spans }) => [session, spans.length])).toEqual([
    [SESSION, 6],
    ['second', 2],
  ])
})

test('a refusal ends the trace, and a failed sign-in makes none', () => {
  openings.add(step('sign_in', 0, 5, { result: 'rejected', source }))
  openings.add(step('sign_in', 5, 9, { result: 'accepted', source, identity: 'token' }))
  openings.add(step('authorization', 9, 12, { result: 'denied', identity: 'token' }))
  const traces = openings.take(0, true)
  expect(traces).toMatchObject([
    { result: 'denied', spans: [{ name: 'sign_in' }, { name: 'authorization' }] },
  ])
})

test('clients that come and go are forgotten', () => {
  for (let i = 0; i < 25_000; i++) {
    openings.add(step('sign_in', i, i, { result: 'accepted', identity: `token ${i}` }))
  }
  openings.add(step('authorization', 1, 2, { result: 'denied', identity: 'token 0' }))
  openings.add(step('authorization', 1, 2, { result: 'denied', identity: 'token 24999' }))
  expect(openings.take(0, true).map(({ spans }) => spans.length)).toEqual([1, 2])
})

test('the id of a trace is that of the session', () => {
  expect(traceIdOf('00000000000000000000000001')).toBe('00000000000000000000000000000001')
  expect(traceIdOf('7ZZZZZZZZZZZZZZZZZZZZZZZZZ')).toBe('f'.repeat(32))
  expect(traceIdOf('no id')).toBeUndefined()
})

test('a trace has no name of a user, an address or a target', () => {
  open('token', SESSION)
  const body = exportRequest(
    openings.take(0, true),
    { version: '0.1.0', hostname: 'b1' },
    { randomBytes: (count) => Buffer.alloc(count, 7), origin: 1_900_000_000_000 },
  )
  const text = JSON.stringify(body)
  expect(text).not.toMatch(/192\.0\.2\.7|token|4711/)
  expect(text).toContain(`"traceId":"${traceIdOf(SESSION)}"`)
  expect(text).toContain('"startTimeUnixNano":"1900000000100000000"')
  expect(text.match(/"parentSpanId":"0707070707070707"/g)).toHaveLength(6)
})

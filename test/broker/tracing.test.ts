import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Tracing } from '../../src/broker/tracing.ts'
import { type Collector, startCollector } from '../tracing/collector.ts'
import { until } from '../until.ts'

let collector: Collector
let errors: string[]
let tracing: Tracing
beforeEach(async () => {
  collector = await startCollector()
  errors = []
  // The test decides when the next sending is due.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  tracing = new Tracing({
    config: { endpoint: collector.endpoint },
    resource: { version: '0.1.0', hostname: 'b1' },
    monotonic: () => 10_000,
    now: () => 1_900_000_000_000,
    onError: ({ message }) => void errors.push(message),
  })
})
afterEach(async () => {
  vi.useRealTimers()
  await collector.stop()
})

function open(identity: string): void {
  const said = { protocol: 'SSH', identity } as const
  tracing.add({ name: 'authorization', begin: 1, end: 2, result: 'denied', ...said })
}

test('what a collector refuses for now is sent again, and its loss is told once', async () => {
  collector.status = 503
  open('a')
  for (const requests of [1, 2]) {
    vi.advanceTimersByTime(5000)
    await until(`request ${requests}`, () => collector.requests() === requests && errors.length > 0)
  }
  collector.status = 200
  await tracing.close()
  expect(collector.spans().map(({ name }) => name)).toEqual(['session opening', 'authorization'])
  expect(errors).toEqual(['the collector of traces answered 503'])
})

test('what a collector refuses for good is dropped, and no collector holds a stop up', async () => {
  collector.status = 400
  open('a')
  await tracing.close()
  collector.status = 200
  open('b')
  await tracing.close()
  expect(collector.spans()).toHaveLength(2)
  await collector.stop()
  open('c')
  await tracing.close()
  expect(errors).toHaveLength(2)
  collector = await startCollector()
})

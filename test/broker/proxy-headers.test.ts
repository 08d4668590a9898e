/** Faults of PROXY headers in the log: a line a minute for each listener and kind, and a metric of all. */
import { expect, test } from 'vitest'
import { type ProxyHeadersParts, reportsOf } from '../../src/broker/proxy-headers.ts'
import { metricsOf } from './parts-of-metrics.ts'

const BALANCER = { address: '192.0.2.1', port: 1 }

test('tells of a fault once a minute, with the number of those untold', async () => {
  const lines: object[] = []
  const clock = { now: 0 }
  const metrics = metricsOf()
  const logger = { warn: (line: object) => void lines.push(line), debug: () => undefined }
  const { onRefused } = reportsOf({
    logger: logger as unknown as ProxyHeadersParts['logger'],
    metrics,
    monotonic: () => clock.now,
  })
  for (let n = 0; n < 5; n++) onRefused('ssh', BALANCER, 'missing', 'one')
  onRefused('ssh', BALANCER, 'torn', 'two')
  onRefused('vnc', BALANCER, 'missing', 'three')
  clock.now = 60_000
  onRefused('ssh', BALANCER, 'missing', 'four')
  expect(lines).toEqual([
    { listener: 'ssh', balancer: '192.0.2.1', fault: 'one', untold: 0 },
    { listener: 'ssh', balancer: '192.0.2.1', fault: 'two', untold: 0 },
    { listener: 'vnc', balancer: '192.0.2.1', fault: 'three', untold: 0 },
    { listener: 'ssh', balancer: '192.0.2.1', fault: 'four', untold: 4 },
  ])
  expect(await metrics.registry.metrics()).toContain(
    'sallyport_proxy_header_refusals_total{listener="ssh",reason="missing"} 6\n',
  )
})

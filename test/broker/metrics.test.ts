import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EventCode } from '../../src/audit/events/catalogue.ts'
import type { EventFields } from '../../src/audit/events/fields.ts'
import { MetricsSink } from '../../src/audit/sinks/metrics.ts'
import { type Metrics, type MetricsServer, startMetrics } from '../../src/broker/metrics.ts'
import { describeWithPeers, findProgram } from '../peers/program.ts'
import { feedOf, metricsOf } from './parts-of-metrics.ts'

let metrics: Metrics
let sink: MetricsSink
let server: MetricsServer
let base: string
beforeEach(async () => {
  metrics = metricsOf({
    nativeCrypto: false,
    feeds: () => [feedOf('log', 0, 0), feedOf('syslog', 7, 3)],
    isDatabaseAway: () => true,
    isReady: () => false,
    certificateEnds: () => new Map([['https', 1_900_000_000]]),
    takeDelays: () => [12, 250],
    brokers: () => [
      { place: 1, state: 'draining', sessions: 7 },
      { place: 2, state: 'unlinked', sessions: 4 },
    ],
    workers: () => [
      { isUp: true, sessions: 5, connections: 9, residentBytes: 4096, losses: 0 },
      { isUp: false, sessions: 0, connections: 0, residentBytes: Number.NaN, losses: 2 },
    ],
  })
  sink = new MetricsSink(metrics)
  server = await startMetrics(metrics, { host: '127.0.0.1', port: 0 })
  base = `http://127.0.0.1:${server.address.port}`
})
afterEach(() => server.close())

const tell = (code: EventCode, fields: EventFields) => sink.count({ sequence: 1, time: 0, code, fields })
const scrape = async () => (await fetch(`${base}/metrics`)).text()
async function value(series: string): Promise<string | undefined> {
  return (await scrape())
    .split('\n')
    .find((line) => line.startsWith(`${series} `))
    ?.slice(series.length + 1)
}

test('serves /metrics and nothing else', async () => {
  const response = await fetch(`${base}/metrics`)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/)
  expect((await fetch(`${base}/`)).status).toBe(404)
  expect((await fetch(`${base}/metrics/../etc/passwd`)).status).toBe(404)
  expect((await fetch(`${base}/metrics`, { method: 'POST' })).status).toBe(405)
})

test('every name begins with sallyport_', async () => {
  for (const line of (await scrape()).split('\n'))
    expect(line).toMatch(/^(# (HELP|TYPE) sallyport_|sallyport_|$)/)
})

test('says what runs and how the sinks are', async () => {
  expect(await value('sallyport_database_away')).toBe('1')
  expect(await value(`sallyport_build_info{version="0.1.0",node="${process.versions.node}"}`)).toBe('1')
  expect(await value('sallyport_crypto_binding_native')).toBe('0')
  expect(await value('sallyport_sink_queued_messages{sink="1-syslog",receiver="udp://syslog:514"}')).toBe('7')
  expect(await value('sallyport_sink_lost_messages{sink="1-syslog",receiver="udp://syslog:514"}')).toBe('3')
})

test('says when the certificate of a listener ends', async () => {
  expect(await value('sallyport_certificate_expiry_timestamp_seconds{listener="https"}')).toBe('1900000000')
})

test('says how long the event loops of session workers stood still, by the place of the worker', async () => {
  expect(await value('sallyport_worker_eventloop_lag_max_seconds{worker="1"}')).toBe('0.012')
  expect(await value('sallyport_worker_eventloop_lag_max_seconds{worker="2"}')).toBe('0.25')
})

test('says how brokers and session workers are, by their place', async () => {
  expect(await value('sallyport_broker_sessions{broker="1"}')).toBe('7')
  expect(await value('sallyport_broker_sessions{broker="2"}')).toBe('4')
  expect(await value('sallyport_broker_state{broker="1",state="draining"}')).toBe('1')
  expect(await value('sallyport_broker_state{broker="2",state="unlinked"}')).toBe('1')
  expect(await value('sallyport_worker_up{worker="1"}')).toBe('1')
  expect(await value('sallyport_worker_up{worker="2"}')).toBe('0')
  expect(await value('sallyport_worker_sessions{worker="1"}')).toBe('5')
  expect(await value('sallyport_worker_connections{worker="1"}')).toBe('9')
  expect(await value('sallyport_worker_resident_memory_bytes{worker="1"}')).toBe('4096')
  expect(await value('sallyport_worker_losses_total{worker="2"}')).toBe('2')
})

test('says how far recordings are on their way to an object store, where there is one', async () => {
  expect(await scrape()).not.toContain('upload')
  const totals = { bytes: 12, failures: 3 }
  const { registry } = metricsOf({ uploads: { totals, waiting: async () => 7 } })
  totals.bytes = 20
  await registry.metrics()
  const text = await registry.metrics()
  expect(text).toMatch(/^sallyport_recording_uploads_waiting 7$/m)
  expect(text).toMatch(/^sallyport_recording_upload_bytes_total 20$/m)
  expect(text).toMatch(/^sallyport_recording_upload_failures_total 3$/m)
})

test('counts what the audit tells', async () => {
  tell('auth.failure', { method: 'password' })
  tell('auth.success', { method: 'publickey' })
  tell('session.open', { session: 'a', protocol: 'SSH' })
  tell('session.open', { session: 'b', protocol: 'SSH' })
  tell('session.close', { session: 'a', protocol: 'SSH', result: 'killed' })
  tell('session.close', { session: 'of an earlier start', protocol: 'SSH', result: 'lost' })
  tell('channel.open', { subprotocol: 'SSH_SHELL' })
  tell('channel.denied', { subprotocol: 'SSH_X11' })
  tell('recording.sealed', { size: 4096 })
  tell('recording.failed', {})
  tell('checkout.out', {})
  expect(await value('sallyport_authentications_total{method="password",result="failure"}')).toBe('1')
  expect(await value('sallyport_authentications_total{method="publickey",result="success"}')).toBe('1')
  expect(await value('sallyport_sessions_current{protocol="SSH"}')).toBe('1')
  expect(await value('sallyport_sessions_total{protocol="SSH",result="killed"}')).toBe('1')
  expect(await value('sallyport_sessions_total{protocol="SSH",result="lost"}')).toBe('1')
  expect(await value('sallyport_channels_total{subprotocol="SSH_SHELL",result="opened"}')).toBe('1')
  expect(await value('sallyport_channels_total{subprotocol="SSH_X11",result="denied"}')).toBe('1')
  expect(await value('sallyport_recording_bytes_total')).toBe('4096')
  expect(await value('sallyport_recording_failures_total')).toBe('1')
  expect(await value('sallyport_checkouts_total{result="out"}')).toBe('1')
})

test('tells methods of sign-in apart, and how long servers of each type took', async () => {
  const methods = [
    ...['gssapi-with-mic', 'browser', 'api_password', 'api_key', 'page_password', 'negotiate'],
    ...['oidc', 'saml', 'bearer', 'provider'],
  ]
  for (const method of methods) tell('auth.success', { method })
  metrics.signInServers.observe({ type: 'RADIUS', result: 'challenge' }, 0.3)
  for (const method of methods)
    expect(await value(`sallyport_authentications_total{method="${method}",result="success"}`)).toBe('1')
  const series = 'sallyport_sign_in_server_duration_seconds'
  expect(await value(`${series}_count{type="RADIUS",result="challenge"}`)).toBe('1')
  expect(await value(`${series}_bucket{le="0.1",type="RADIUS",result="challenge"}`)).toBe('0')
})

test('what clients choose makes no series of its own', async () => {
  for (let i = 0; i < 50; i++) {
    tell('auth.failure', { method: `method-${i}`, user: `user-${i}` })
    tell('channel.denied', { subprotocol: `subsystem-${i}` })
    tell('session.denied', { protocol: `protocol-${i}`, target_host: `host-${i}` })
  }
  const text = await scrape()
  expect(text).not.toMatch(/-49/)
  expect(await value('sallyport_authentications_total{method="other",result="failure"}')).toBe('50')
})

const ALERTS = 'config/monitoring/alerts.yaml'
const DASHBOARD = 'config/monitoring/dashboard.json'

test('alerts and dashboard read only metrics that there are', async () => {
  const { registry } = metricsOf({ uploads: { totals: { bytes: 0, failures: 0 }, waiting: async () => 0 } })
  const known = new Set(registry.getMetricsAsArray().map(({ name }) => name))
  for (const [file, least] of [
    [ALERTS, 10],
    [DASHBOARD, 15],
  ] as const) {
    const read = new Set(readFileSync(file, 'utf8').match(/\bsallyport_[a-z0-9_]+/g))
    expect(read.size).toBeGreaterThan(least)
    const unknown = [...read].filter((name) => !known.has(name.replace(/_(bucket|count|sum)$/, '')))
    expect(unknown, file).toEqual([])
  }
})

describeWithPeers('promtool', ['promtool'], () => {
  const promtool = (args: string[], input = '') =>
    execFileSync(findProgram('promtool'), args, { input, encoding: 'utf8', stdio: 'pipe' })

  test('finds no fault in names, types and help', async () => {
    // Every counter with labels has a series only after its first event.
    tell('auth.success', { method: 'password' })
    tell('session.open', { session: 'a', protocol: 'SSH' })
    expect(promtool(['check', 'metrics'], await scrape())).toBe('')
    expect(() => promtool(['check', 'metrics'], '# TYPE wrong_total gauge\nwrong_total 1\n')).toThrow(
      /_total/,
    )
  })

  test('accepts the rules, which fire when they should', () => {
    expect(promtool(['check', 'rules', ALERTS])).toContain('SUCCESS')
    expect(promtool(['test', 'rules', 'test/broker/alerts.yaml'])).toContain('SUCCESS')
  })
})

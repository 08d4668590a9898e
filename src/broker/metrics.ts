/**
 * The metrics that Prometheus reads at /metrics. Names begin with `sallyport_` and include the unit; no label
 * holds a user, a host or a session, so the program and its configuration bound the number of series.
 */
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { Feed } from '../audit/feeds/feed.ts'
import { eventMetrics } from '../audit/sinks/metrics.ts'
import type { SecretFigures } from '../store/store.ts'
import { durations } from './durations.ts'
import { type NodesOptions, nodeMetrics } from './nodes.ts'

const PATH = '/metrics'
/** Sums of other gauges of prom-client, with names that Prometheus keeps for counters. */
const MISNAMED = ['resources', 'handles', 'requests'].map((kind) => `sallyport_nodejs_active_${kind}_total`)
/** A scraper sends one short request. */
const REQUEST_TIMEOUT_MS = 10_000
const MAX_CONNECTIONS = 32
const MAX_HEADER_BYTES = 8192

export interface MetricsOptions extends NodesOptions {
  version: string
  /** Whether ssh2's crypto binding was loaded; sessions are many times slower without it. */
  nativeCrypto: boolean
  /** Returns the receivers of events, in the order of the configuration. */
  feeds: () => readonly Pick<Feed, 'sink' | 'queued' | 'lost'>[]
  /** Returns the free space of the recordings' volume. */
  freeBytes: () => Promise<number>
  isDatabaseAway: () => boolean
  /** Returns whether users can open sessions, as /readyz does. */
  isReady: () => boolean
  pendingApprovals: () => Promise<number>
  /** Returns the longest delay of each session worker's event loop since the last call, in milliseconds. */
  takeDelays: () => readonly number[]
  /** Returns when the certificates of the listeners end, in seconds since the epoch, by listener. */
  certificateEnds: () => ReadonlyMap<string, number>
  /** Returns figures of secrets whose domains change them. */
  secrets: () => Promise<Pick<SecretFigures, 'overdue' | 'mismatch' | 'unknown'>>
  /** Absent without an object store. */
  uploads?: UploadFigures
}

export interface UploadFigures {
  /** Since the start. */
  totals: { readonly bytes: number; readonly failures: number }
  /** Returns the recordings that have ended and are not yet in the object store. */
  waiting: () => Promise<number>
}

export type Metrics = ReturnType<typeof createMetrics>

/** Creates the counters and a registry of their own. */
export function createMetrics({
  version,
  nativeCrypto,
  feeds,
  freeBytes,
  isDatabaseAway,
  isReady,
  pendingApprovals,
  takeDelays,
  certificateEnds,
  secrets,
  uploads,
  ...nodes
}: MetricsOptions) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry, prefix: 'sallyport_' })
  for (const name of MISNAMED) registry.removeSingleMetric(name)

  new Gauge({
    name: 'sallyport_build_info',
    help: 'Always 1; the version is a label.',
    labelNames: ['version', 'node'],
    registers,
  }).set({ version, node: process.versions.node }, 1)
  new Gauge({
    name: 'sallyport_crypto_binding_native',
    help: 'Whether the native crypto binding of SSH is in use (1) or its slow replacement (0).',
    registers,
  }).set(nativeCrypto ? 1 : 0)

  new Gauge({
    name: 'sallyport_recordings_free_bytes',
    help: 'Free space on the volume of the recordings.',
    registers,
    async collect() {
      this.set(await freeBytes().catch(() => Number.NaN))
    },
  })

  new Gauge({
    name: 'sallyport_approvals_pending',
    help: 'Requests for approval that wait for an answer.',
    registers,
    async collect() {
      this.set(await pendingApprovals().catch(() => Number.NaN))
    },
  })

  new Gauge({
    name: 'sallyport_ready',
    help: 'Whether users can open sessions (1), as /readyz says.',
    registers,
    collect() {
      this.set(isReady() ? 1 : 0)
    },
  })

  new Gauge({
    name: 'sallyport_database_away',
    help: 'Whether the database cannot be used (1): nobody can sign in.',
    registers,
    collect() {
      this.set(isDatabaseAway() ? 1 : 0)
    },
  })

  new Gauge({
    name: 'sallyport_secrets_overdue',
    help: 'Secrets that are older than the password change policy of their domain allows.',
    registers,
    async collect() {
      this.set((await secrets().catch(() => undefined))?.overdue ?? Number.NaN)
    },
  })
  new Gauge({
    name: 'sallyport_secrets_mismatched',
    help: "Stored secrets that their targets refuse, or of which it is not known whether they are the targets'.",
    registers,
    async collect() {
      const found = await secrets().catch(() => undefined)
      this.set(found ? found.mismatch + found.unknown : Number.NaN)
    },
  })

  new Gauge({
    name: 'sallyport_certificate_expiry_timestamp_seconds',
    help: 'When the certificate of a listener ends, in seconds since the epoch; of the host certificates of SSH the first.',
    labelNames: ['listener'],
    registers,
    collect() {
      this.reset()
      for (const [listener, end] of certificateEnds()) this.set({ listener }, end)
    },
  })

  // Named as prom-client names the broker's own.
  new Gauge({
    name: 'sallyport_worker_eventloop_lag_max_seconds',
    help: 'The longest delay of the event loop of a session worker since the last scrape, by its place.',
    labelNames: ['worker'],
    registers,
    collect() {
      this.reset()
      for (const [place, delay] of takeDelays().entries()) this.set({ worker: place + 1 }, delay / 1000)
    },
  })

  nodeMetrics(nodes, registers)

  const perFeed = (name: string, help: string, figure: 'queued' | 'lost') =>
    new Gauge({
      name,
      help,
      labelNames: ['sink', 'receiver'],
      registers,
      collect() {
        this.reset()
        for (const [i, feed] of feeds().entries()) {
          this.set({ sink: `${i}-${feed.sink.type}`, receiver: feed.sink.address }, feed[figure])
        }
      },
    })
  perFeed('sallyport_sink_queued_messages', 'Rows of the audit log that wait for their receiver.', 'queued')
  perFeed(
    'sallyport_sink_lost_messages',
    'Rows of the audit log that a receiver will not get, since the start.',
    'lost',
  )

  if (uploads) countUploads(uploads, registers)
  return {
    registry,
    ...eventMetrics(registers),
    durations: durations(registers),
    proxyHeaderRefusals: new Counter({
      name: 'sallyport_proxy_header_refusals_total',
      help: 'Connections from networks of proxy_protocol.from that were closed for their PROXY header.',
      labelNames: ['listener', 'reason'],
      registers,
    }),
    snmpMessages: new Counter({
      name: 'sallyport_snmp_messages_total',
      help: 'Datagrams that came to the SNMP agent, by what became of them.',
      labelNames: ['result'],
      registers,
    }),
    signInServers: new Histogram({
      name: 'sallyport_sign_in_server_duration_seconds',
      help: 'Answers of the servers that judge sign-ins, and of those that could not, by type of server.',
      labelNames: ['type', 'result'],
      buckets: [0.005, 0.02, 0.1, 0.5, 2, 10],
      registers,
    }),
    apiRequests: new Histogram({
      name: 'sallyport_api_request_duration_seconds',
      help: 'Answered requests of the API, by route pattern.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.005, 0.02, 0.1, 0.5, 2],
      registers,
    }),
  }
}

function countUploads({ totals, waiting }: UploadFigures, registers: Registry[]): void {
  new Gauge({
    name: 'sallyport_recording_uploads_waiting',
    help: 'Recordings that have ended and are not in the object store yet.',
    registers,
    async collect() {
      this.set(await waiting().catch(() => Number.NaN))
    },
  })
  const total = (name: string, help: string, figure: 'bytes' | 'failures') =>
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset()
        this.inc(totals[figure])
      },
    })
  total(
    'sallyport_recording_upload_bytes_total',
    'Bytes of recordings that went to the object store.',
    'bytes',
  )
  total(
    'sallyport_recording_upload_failures_total',
    'Attempts to copy a recording to the object store that failed.',
    'failures',
  )
}

export interface MetricsServer {
  address: AddressInfo
  close(): Promise<void>
}

/**
 * Serves `GET /metrics` over plain HTTP without a password: `address` should be a loopback one. Rejects if it
 * cannot bind. Port 0: the system chooses.
 */
export async function startMetrics(
  { registry }: Pick<Metrics, 'registry'>,
  address: { host: string; port: number },
): Promise<MetricsServer> {
  const server = createServer(
    {
      requestTimeout: REQUEST_TIMEOUT_MS,
      headersTimeout: REQUEST_TIMEOUT_MS,
      maxHeaderSize: MAX_HEADER_BYTES,
    },
    (request, response) => {
      if (request.url?.split('?')[0] !== PATH) {
        response.writeHead(404, { 'content-type': 'text/plain' }).end(`metrics are at ${PATH}\n`)
      } else if (request.method !== 'GET' && request.method !== 'HEAD') {
        response.writeHead(405, { allow: 'GET, HEAD' }).end()
      } else {
        registry.metrics().then(
          (text) => response.writeHead(200, { 'content-type': registry.contentType }).end(text),
          () => response.writeHead(500).end(),
        )
      }
    },
  )
  server.maxConnections = MAX_CONNECTIONS
  server.listen(address.port, address.host)
  await once(server, 'listening')
  return {
    address: server.address() as AddressInfo,
    async close() {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

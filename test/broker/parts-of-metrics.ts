/** Metrics of a broker that is not there. */
import { createMetrics, type Metrics, type MetricsOptions } from '../../src/broker/metrics.ts'

export function metricsOf(parts: Partial<MetricsOptions> = {}): Metrics {
  return createMetrics({
    version: '0.1.0',
    nativeCrypto: true,
    feeds: () => [],
    freeBytes: async () => 5e9,
    isDatabaseAway: () => false,
    isReady: () => true,
    pendingApprovals: async () => 3,
    secrets: async () => ({ overdue: 2, mismatch: 1, unknown: 0 }),
    certificateEnds: () => new Map(),
    takeDelays: () => [],
    brokers: () => [{ place: 1, state: 'serving', sessions: 0 }],
    workers: () => [],
    ...parts,
  })
}

/** Returns a receiver of events that has none. */
export const feedOf = (type: 'log' | 'syslog', queued: number, lost: number) => ({
  sink: {
    type,
    address: `udp://${type}:514`,
    identity: type,
    wants: () => true,
    connect: () => Promise.reject(new Error('nobody connects here')),
  },
  queued,
  lost,
})

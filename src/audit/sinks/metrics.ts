/** Counts events for Prometheus. All counters are here, so that log and metrics cannot differ. */
import { Counter, Gauge, type Registry } from 'prom-client'
import { PROTOCOLS, RIGHTS } from '../../model/rights.ts'
import type { StoredEvent } from '../chain.ts'
import { SIGN_IN_METHODS } from '../events/fields.ts'

/**
 * Limits label values, which come from events and so from clients: values that are not on the list are
 * counted as `other`.
 */
const among =
  (known: readonly string[]) =>
  (value: string | number | undefined): string =>
    known.find((one) => one === value) ?? 'other'
const protocolLabel = among([...PROTOCOLS, 'HTTPS'])
const methodLabel = among(SIGN_IN_METHODS)
const subprotocolLabel = among(RIGHTS)
const deletedLabel = among(['age', 'size', 'request'])
const resultLabel = among(['success', 'failure', 'killed', 'lost'])
const approvalLabel = among(['accepted', 'rejected', 'cancelled', 'expired', 'revoked'])

const AUTH_RESULTS = {
  'auth.success': 'success',
  'auth.failure': 'failure',
  'auth.unavailable': 'unavailable',
} as const

export type EventMetrics = ReturnType<typeof eventMetrics>

/** Counters of events. */
export function eventMetrics(registers: Registry[]) {
  return {
    /** Protocols of the running sessions by id, counted by `sessionsCurrent`. */
    running: new Map<string, string>(),
    sessionsCurrent: new Gauge({
      name: 'sallyport_sessions_current',
      help: 'Sessions that run.',
      labelNames: ['protocol'],
      registers,
    }),
    sessions: new Counter({
      name: 'sallyport_sessions_total',
      help: 'Sessions that ended, or were denied.',
      labelNames: ['protocol', 'result'],
      registers,
    }),
    authentications: new Counter({
      name: 'sallyport_authentications_total',
      help: 'Attempts to sign in.',
      labelNames: ['method', 'result'],
      registers,
    }),
    channels: new Counter({
      name: 'sallyport_channels_total',
      help: 'Channels within sessions, by the right they used; denied ones together.',
      labelNames: ['subprotocol', 'result'],
      registers,
    }),
    recordingBytes: new Counter({
      name: 'sallyport_recording_bytes_total',
      help: 'Bytes of recordings that were sealed.',
      registers,
    }),
    recordingFailures: new Counter({
      name: 'sallyport_recording_failures_total',
      help: 'Recordings that could not be written.',
      registers,
    }),
    recordingsDeleted: new Counter({
      name: 'sallyport_recordings_deleted_total',
      help: 'Recordings that were deleted, with a tombstone.',
      labelNames: ['method'],
      registers,
    }),
    checkouts: new Counter({
      name: 'sallyport_checkouts_total',
      help: 'Checkouts of secrets: out, in, expired, forced, denied.',
      labelNames: ['result'],
      registers,
    }),
    lockouts: new Counter({
      name: 'sallyport_lockouts_total',
      help: 'How often sign-in was held up for a user or an address.',
      registers,
    }),
    approvals: new Counter({
      name: 'sallyport_approvals_total',
      help: 'Requests for approval, and what became of them: accepted, rejected, cancelled, expired, revoked.',
      labelNames: ['result'],
      registers,
    }),
  }
}

/** Counts the events stored by this process. It has no position, since it counts from the start. */
export class MetricsSink {
  readonly #metrics: EventMetrics

  constructor(metrics: EventMetrics) {
    this.#metrics = metrics
  }

  count({ code, fields }: StoredEvent): void {
    const metrics = this.#metrics
    // Refusals that were folded into one event.
    const times = Number(fields.count ?? 1)
    switch (code) {
      case 'auth.success':
      case 'auth.failure':
      case 'auth.unavailable':
        metrics.authentications.inc({ method: methodLabel(fields.method), result: AUTH_RESULTS[code] }, times)
        break
      case 'auth.locked':
        metrics.lockouts.inc()
        break
      case 'approval.request':
        metrics.approvals.inc({ result: 'requested' })
        break
      case 'approval.answer':
      case 'approval.end':
        // An answer that could not be stored does not count.
        if (fields.result !== 'failure') metrics.approvals.inc({ result: approvalLabel(fields.result) })
        break
      case 'session.open':
        metrics.running.set(String(fields.session), protocolLabel(fields.protocol))
        metrics.sessionsCurrent.inc({ protocol: protocolLabel(fields.protocol) })
        break
      case 'session.close': {
        // A session that was lost before this start has no opening to subtract.
        const protocol = metrics.running.get(String(fields.session))
        metrics.running.delete(String(fields.session))
        if (protocol !== undefined) metrics.sessionsCurrent.dec({ protocol })
        metrics.sessions.inc({ protocol: protocolLabel(fields.protocol), result: resultLabel(fields.result) })
        break
      }
      case 'session.denied':
        metrics.sessions.inc({ protocol: protocolLabel(fields.protocol), result: 'denied' }, times)
        break
      case 'channel.open':
      case 'channel.denied':
        metrics.channels.inc(
          {
            subprotocol: subprotocolLabel(fields.subprotocol),
            result: code === 'channel.open' ? 'opened' : 'denied',
          },
          times,
        )
        break
      case 'recording.sealed':
      case 'recording.recovered':
        metrics.recordingBytes.inc(Math.max(0, Number(fields.size ?? 0)))
        break
      case 'recording.failed':
        metrics.recordingFailures.inc()
        break
      case 'recording.deleted':
        if (fields.result !== 'failure')
          metrics.recordingsDeleted.inc({ method: deletedLabel(fields.method) })
        break
      case 'checkout.out':
      case 'checkout.in':
      case 'checkout.expired':
      case 'checkout.forced':
      case 'checkout.denied':
        metrics.checkouts.inc({ result: code.slice('checkout.'.length) }, times)
        break
    }
  }
}

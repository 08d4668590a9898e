/**
 * The one catalogue of events (invariant 8): the stable code, what it means, its severity, the sentence that a
 * person reads, and whether a SNMP notification goes with it. docs/events.md is checked against it by a test.
 * Codes and field names are contract.md's.
 */

export type Severity = 'notice' | 'warning' | 'alert'

/** Fields of an event; the same keys in the log, in syslog's structured data and in SNMP notifications. */
export const EVENT_FIELDS = [
  'session',
  'user',
  'profile',
  'client_ip',
  'client_port',
  'method',
  'protocol',
  'subprotocol',
  'account',
  'domain',
  'device',
  'service',
  'target_host',
  'authorization',
  'result',
  'reason',
  'object',
  'object_type',
  'changes',
  'path',
  'direction',
  'size',
  'sha256',
  'digest',
  'duration',
  'bytes_in',
  'bytes_out',
] as const
export type EventField = (typeof EVENT_FIELDS)[number]
export type EventFields = Partial<Record<EventField, string | number>>

interface EventKind {
  readonly severity: Severity
  readonly trap: boolean
  readonly meaning: string
  readonly sentence: (fields: EventFields) => string
}

const who = (f: EventFields) => `${f.user ?? 'somebody'}${f.client_ip ? ` from ${f.client_ip}` : ''}`
const target = (f: EventFields) => (f.device ? `${f.account ?? '?'}@${f.domain ?? '?'}:${f.device}:${f.service ?? '?'}` : 'a target')

export const EVENTS = {
  'auth.success': {
    severity: 'notice',
    trap: false,
    meaning: 'somebody signed in',
    sentence: (f) => `${who(f)} signed in by ${f.method}`,
  },
} as const satisfies Record<string, EventKind>

export type EventCode = keyof typeof EVENTS

export interface AuditEvent {
  /** Milliseconds since the epoch. */
  time: number
  code: EventCode
  fields: EventFields
}

/** Where the rest of the broker says what happened. */
export interface Audit {
  /** Resolves when the event stands in the chained log; a sink that is slow or down does not hold it up. */
  record(code: EventCode, fields: EventFields): Promise<void>
}

export { target as targetOf }

/**
 * The one catalogue of events (invariant 8): the stable code, what it means, its severity, the fields it
 * carries, the sentence that a person reads, and whether a SNMP notification goes with it. docs/events.md and
 * config/SALLYPORT-MIB.txt are checked against it by tests. Codes and field names are contract.md's.
 */
import { ADMINISTRATION } from './administration.ts'
import type { EventFields, EventKind, Severity } from './fields.ts'
import { GUESTS } from './guests.ts'
import { RECORDINGS } from './recordings.ts'
import { SESSIONS } from './sessions.ts'

export const EVENTS = { ...SESSIONS, ...GUESTS, ...RECORDINGS, ...ADMINISTRATION } as const satisfies Record<
  string,
  EventKind
>

export type EventCode = keyof typeof EVENTS

/** The fields that the catalogue lists for a code. */
export type FieldsOf<C extends EventCode> = Pick<EventFields, (typeof EVENTS)[C]['fields'][number]>

/** Codes with a SNMP notification. Their place here is their number in the MIB (from 1): only ever append. */
export const TRAP_CODES: readonly EventCode[] = [
  'auth.failure',
  'auth.locked',
  'session.open',
  'session.close',
  'session.denied',
  'session.kill',
  'hostkey.changed',
  'recording.failed',
  'checkout.denied',
  'sink.down',
  'recording.space',
  'sink.up',
  'sink.begin',
  'sink.end',
  'sink.missed',
  'config.reload',
]

/** The catalogue's entry of a code. */
export function kindOf(code: EventCode): EventKind {
  return EVENTS[code]
}

/** Results that make a warning of an event that is a notice otherwise. */
const BAD_RESULTS: readonly (string | number | undefined)[] = ['failure', 'refused', 'denied', 'lost']

/** The severity of one event: its kind's, raised to a warning by a failure, a denial, or a rule that was met. */
export function severityOf(event: Pick<AuditEvent, 'code' | 'fields'>): Severity {
  const own = kindOf(event.code).severity
  const isBad = BAD_RESULTS.includes(event.fields.result) || event.fields.rule !== undefined
  return own === 'notice' && isBad ? 'warning' : own
}

export interface AuditEvent {
  /** Milliseconds since the epoch. */
  time: number
  code: EventCode
  fields: EventFields
}

/** Where the rest of the broker says what happened. */
export interface Audit {
  /** Resolves when the event stands in the chained log; a sink that is slow or down does not hold it up. */
  record<C extends EventCode>(code: C, fields: FieldsOf<C>): Promise<void>
}

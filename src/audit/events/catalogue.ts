/**
 * The only catalogue of events (invariant 8): the stable code, its meaning and severity, its fields, the
 * sentence for people, and whether it has a SNMP notification. docs/events.md and config/SALLYPORT-MIB.txt
 * are checked against it by tests. Codes and field names are those of docs/events.md.
 */
import { ADMINISTRATION } from './administration.ts'
import { APPROVALS } from './approvals.ts'
import { FACTORS } from './factors.ts'
import type { EventFields, EventKind, Severity } from './fields.ts'
import { GUESTS } from './guests.ts'
import { RECORDINGS } from './recordings.ts'
import { SESSIONS } from './sessions.ts'
import { SIGN_IN_SERVERS } from './sign-in-servers.ts'

export const EVENTS = {
  ...SESSIONS,
  ...GUESTS,
  ...RECORDINGS,
  ...ADMINISTRATION,
  ...APPROVALS,
  ...FACTORS,
  ...SIGN_IN_SERVERS,
} as const satisfies Record<string, EventKind>

export type EventCode = keyof typeof EVENTS

/** The catalogue's fields of a code. */
export type FieldsOf<C extends EventCode> = Pick<EventFields, (typeof EVENTS)[C]['fields'][number]>

/** Codes with a SNMP notification. Their index here is their number in the MIB (from 1): only append. */
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
  'worker.lost',
  'worker.loop',
  'database.away',
  'database.back',
]

/** Returns the catalogue's entry of a code. */
export function kindOf(code: EventCode): EventKind {
  return EVENTS[code]
}

/** Results that raise a notice to a warning; store/audit-fields.ts says the same in SQL. */
export const BAD_RESULTS: readonly (string | number | undefined)[] = ['failure', 'refused', 'denied', 'lost']

/** Returns whether a result is a failure or a denial. */
export function isBad(result: string | number | undefined): boolean {
  return BAD_RESULTS.includes(result)
}

/**
 * Returns the severity of one event: its kind's, raised to a warning by a failure, a denial, or a matched
 * rule.
 */
export function severityOf(event: Pick<AuditEvent, 'code' | 'fields'>): Severity {
  const own = kindOf(event.code).severity
  const { result, rule } = event.fields
  return own === 'notice' && (isBad(result) || rule !== undefined) ? 'warning' : own
}

export interface AuditEvent {
  /** Milliseconds since the epoch. */
  time: number
  code: EventCode
  fields: EventFields
}

/** The audit log, as the rest of the broker writes to it. */
export interface Audit {
  /** Resolves when the event is in the chained log; a slow or failed sink does not delay it. */
  record<C extends EventCode>(code: C, fields: FieldsOf<C>): Promise<void>
}

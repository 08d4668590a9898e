/**
 * The one catalogue of events (invariant 8): the stable code, what it means, its severity, the fields it
 * carries, the sentence that a person reads, and whether a SNMP notification goes with it. docs/events.md and
 * config/SALLYPORT-MIB.txt are checked against it by tests. Codes and field names are contract.md's.
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
  'destination',
  'confidence',
  'rule',
] as const
export type EventField = (typeof EVENT_FIELDS)[number]
/** `duration` is in milliseconds, `size` and `bytes_…` are bytes. */
export type EventFields = Partial<Record<EventField, string | number>>

/** Fields that hold a number wherever they are present; all others are text. */
export const NUMERIC_FIELDS = ['client_port', 'size', 'duration', 'bytes_in', 'bytes_out'] as const

export interface EventKind {
  readonly severity: Severity
  readonly trap: boolean
  readonly meaning: string
  /** What it may carry; which of them are there depends on how far things had come. */
  readonly fields: readonly EventField[]
  readonly sentence: (fields: EventFields) => string
}

const CLIENT = ['client_ip', 'client_port'] as const
const TARGET = ['account', 'domain', 'device', 'service', 'target_host'] as const
const SESSION = ['session', 'user', ...CLIENT, 'protocol', ...TARGET] as const
const CHANNEL = [...SESSION, 'subprotocol'] as const
const OBJECT = [
  'user',
  'profile',
  ...CLIENT,
  'method',
  'object_type',
  'object',
  'changes',
  'result',
  'reason',
] as const

const who = (f: EventFields) => `${f.user ?? 'somebody'}${f.client_ip ? ` from ${f.client_ip}` : ''}`
const because = (f: EventFields) => (f.reason ? `: ${f.reason}` : '')
const account = (f: EventFields) => `${f.account ?? '?'}@${f.domain ?? '?'}`
const thing = (f: EventFields) => `${f.object_type ?? 'object'} ${f.object ?? '?'}`
const seconds = (ms: string | number) => `${(Number(ms) / 1000).toFixed(1)} s`
const session = (f: EventFields) => `session ${f.session ?? '?'}`

/** The target's canonical name as far as the fields tell it. */
export function targetOf(f: EventFields): string {
  return f.device ? `${account(f)}:${f.device}:${f.service ?? '?'}` : 'a target'
}

/** What was done; or, when it failed, what could not be. */
function deed(f: EventFields, done: string, verb: string, what: string): string {
  return f.result === 'failure'
    ? `${who(f)} could not ${verb} ${what}${because(f)}`
    : `${who(f)} ${done} ${what}`
}

/** A channel's right, and where a forwarded one goes. */
function channel(f: EventFields): string {
  return `${f.subprotocol ?? 'a channel'}${f.destination === undefined ? '' : ` (${f.destination})`}`
}

/** `up` is toward the target. */
function transfer(f: EventFields): string {
  const verb = f.direction === 'up' ? 'sent' : 'fetched'
  const size = f.size === undefined ? '' : ` (${f.size} bytes)`
  return f.result === 'failure'
    ? `${who(f)} could not transfer ${f.path ?? 'a file'} on ${targetOf(f)}${because(f)}`
    : `${who(f)} ${verb} ${f.path ?? 'a file'}${size} ${f.direction === 'up' ? 'to' : 'from'} ${targetOf(f)}`
}

function command(f: EventFields): string {
  const verb = f.result === 'denied' ? 'was refused' : 'ran'
  const rule = f.rule === undefined ? '' : ` (rule ${f.rule})`
  return `${who(f)} ${verb} a command on ${targetOf(f)}${rule}${f.object === undefined ? because(f) : `: ${f.object}`}`
}

export const EVENTS = {
  'auth.success': {
    severity: 'notice',
    trap: false,
    meaning: 'somebody signed in',
    fields: ['user', 'profile', ...CLIENT, 'protocol', 'method'],
    sentence: (f) => `${who(f)} signed in by ${f.method ?? '?'}`,
  },
  'auth.failure': {
    severity: 'warning',
    trap: true,
    meaning: 'somebody could not sign in; the reason is for the audit and is never told to the client',
    fields: ['user', ...CLIENT, 'protocol', 'method', 'reason'],
    sentence: (f) => `${who(f)} could not sign in by ${f.method ?? '?'}${because(f)}`,
  },
  'auth.locked': {
    severity: 'warning',
    trap: true,
    meaning: 'too many failures: sign-in is held up for the user or the address',
    fields: ['user', ...CLIENT, 'protocol', 'method', 'reason', 'duration'],
    sentence: (f) =>
      `sign-in of ${who(f)} is locked${f.duration === undefined ? '' : ` for ${seconds(f.duration)}`}${because(f)}`,
  },
  'session.open': {
    severity: 'notice',
    trap: true,
    meaning: 'a session to a target began',
    fields: [...SESSION, 'authorization'],
    sentence: (f) => `${who(f)} opened ${session(f)} to ${targetOf(f)}`,
  },
  'session.close': {
    severity: 'notice',
    trap: true,
    meaning: 'a session ended; a warning when its result is `failure`',
    fields: [...SESSION, 'subprotocol', 'result', 'reason', 'duration', 'bytes_in', 'bytes_out'],
    sentence: (f) =>
      `${session(f)} of ${who(f)} to ${targetOf(f)} ended${f.duration === undefined ? '' : ` after ${seconds(f.duration)}`}${because(f)}`,
  },
  'session.denied': {
    severity: 'warning',
    trap: true,
    meaning: 'a session was refused',
    fields: [...SESSION, 'reason'],
    sentence: (f) => `${who(f)} was refused ${targetOf(f)}${because(f)}`,
  },
  'session.kill': {
    severity: 'warning',
    trap: true,
    meaning: 'somebody, or a rule, ended a running session; `user` is who ended it',
    fields: ['session', 'user', 'protocol', ...TARGET, 'reason'],
    sentence: (f) =>
      `${session(f)} to ${targetOf(f)} was ended${f.user === undefined ? '' : ` by ${who(f)}`}${because(f)}`,
  },
  'channel.open': {
    severity: 'notice',
    trap: false,
    meaning:
      'a shell, a command, a file transfer, a forwarded connection or its listener on the target began within a session',
    fields: [...CHANNEL, 'destination'],
    sentence: (f) => `${who(f)} opened ${channel(f)} on ${targetOf(f)}`,
  },
  'channel.denied': {
    severity: 'warning',
    trap: false,
    meaning: 'something within a session was refused: the right is missing, or the broker does not relay it',
    fields: [...CHANNEL, 'reason', 'destination'],
    sentence: (f) => `${who(f)} was refused ${channel(f)} on ${targetOf(f)}${because(f)}`,
  },
  'channel.unrecorded': {
    severity: 'warning',
    trap: false,
    meaning:
      'a stream passed the recording quota: it goes on, recorded by hash and count only. Written again at its end with size and sha256',
    fields: [...CHANNEL, 'direction', 'size', 'sha256', 'reason'],
    sentence: (f) =>
      `${f.subprotocol ?? 'a channel'} of ${session(f)} is recorded by hash and count only${f.size === undefined ? '' : ` (${f.size} bytes)`}${because(f)}`,
  },
  command: {
    severity: 'notice',
    trap: false,
    meaning:
      'a command line; `object` is the line as it was typed, secrets on it included. A warning when it met a `rule`; `denied`: it did not reach the target. Without `object`, `reason` says what is left out',
    fields: [...CHANNEL, 'object', 'confidence', 'rule', 'result', 'reason'],
    sentence: command,
  },
  'file.transfer': {
    severity: 'notice',
    trap: false,
    meaning: 'a file went to the target (`up`) or came from it (`down`)',
    fields: [...CHANNEL, 'path', 'direction', 'size', 'sha256', 'result', 'reason'],
    sentence: transfer,
  },
  'file.denied': {
    severity: 'warning',
    trap: false,
    meaning: 'an operation on a file was refused',
    fields: [...CHANNEL, 'path', 'direction', 'reason'],
    sentence: (f) => `${who(f)} was refused ${f.path ?? 'a file'} on ${targetOf(f)}${because(f)}`,
  },
  'checkout.out': {
    severity: 'notice',
    trap: false,
    meaning: 'the secret of an account was handed to a user',
    fields: ['user', ...CLIENT, 'account', 'domain', 'device', 'authorization', 'object', 'duration'],
    sentence: (f) => `${who(f)} checked out ${account(f)}`,
  },
  'checkout.in': {
    severity: 'notice',
    trap: false,
    meaning: 'a checked-out secret was returned',
    fields: ['user', ...CLIENT, 'account', 'domain', 'device', 'object'],
    sentence: (f) => `${who(f)} checked in ${account(f)}`,
  },
  'checkout.expired': {
    severity: 'notice',
    trap: false,
    meaning: 'a checkout was over before the secret was returned',
    fields: ['user', 'account', 'domain', 'device', 'object', 'result', 'reason'],
    sentence: (f) =>
      `the checkout of ${account(f)} by ${who(f)} ${f.result === 'failure' ? 'could not be ended' : 'is over'}${because(f)}`,
  },
  'checkout.denied': {
    severity: 'warning',
    trap: true,
    meaning: 'a checkout was refused',
    fields: ['user', ...CLIENT, 'account', 'domain', 'device', 'reason'],
    sentence: (f) => `${who(f)} was refused the checkout of ${account(f)}${because(f)}`,
  },
  'object.create': {
    severity: 'notice',
    trap: false,
    meaning: 'an administrator created an object; `method` is `import` for a row of a CSV table',
    fields: OBJECT,
    sentence: (f) => deed(f, 'created', 'create', thing(f)),
  },
  'object.update': {
    severity: 'notice',
    trap: false,
    meaning:
      'an administrator changed an object; `changes` says what, never a secret; `method` as for `object.create`',
    fields: OBJECT,
    sentence: (f) =>
      deed(f, 'changed', 'change', thing(f)) + (f.changes && f.result !== 'failure' ? `: ${f.changes}` : ''),
  },
  'object.delete': {
    severity: 'notice',
    trap: false,
    meaning: 'an administrator removed an object',
    fields: OBJECT,
    sentence: (f) => deed(f, 'removed', 'remove', thing(f)),
  },
  'hostkey.new': {
    severity: 'notice',
    trap: false,
    meaning:
      "a target's host key was seen for the first time; `result` says whether it was pinned or refused",
    fields: [...SESSION, 'method', 'digest', 'result'],
    sentence: (f) => `${targetOf(f)} showed a new host key ${f.digest ?? '?'}: ${f.result ?? '?'}`,
  },
  'hostkey.changed': {
    severity: 'alert',
    trap: true,
    meaning: "a target's host key is not the pinned one: the connection was ended",
    fields: [...SESSION, 'method', 'digest'],
    sentence: (f) =>
      `the host key of ${targetOf(f)} has changed to ${f.digest ?? '?'}: the connection was ended`,
  },
  'recording.sealed': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was closed in order and signed',
    fields: [...SESSION, 'size', 'digest'],
    sentence: (f) => `the recording of ${session(f)} is sealed (${f.size ?? '?'} bytes)`,
  },
  'recording.recovered': {
    severity: 'warning',
    trap: false,
    meaning:
      'a recording that a crash had left open was sealed as far as it goes; the reason says what is missing',
    fields: [...SESSION, 'size', 'digest', 'reason'],
    sentence: (f) => `the recording of ${session(f)} was sealed after a crash${because(f)}`,
  },
  'recording.failed': {
    severity: 'alert',
    trap: true,
    meaning: 'a recording could not be written, and its session was ended',
    fields: [...SESSION, 'reason'],
    sentence: (f) => `the recording of ${session(f)} failed${because(f)}`,
  },
  'recording.verify': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was checked; a warning when its result is `failure`',
    fields: ['session', 'user', ...CLIENT, 'result', 'reason', 'digest'],
    sentence: (f) => `the recording of ${session(f)} was checked: ${f.result ?? '?'}${because(f)}`,
  },
  'recording.view': {
    severity: 'notice',
    trap: false,
    meaning: 'a recording was opened: replayed, exported or downloaded; `method` is the form',
    fields: ['session', 'user', 'profile', ...CLIENT, 'method'],
    sentence: (f) => `${who(f)} opened the recording of ${session(f)} as ${f.method ?? '?'}`,
  },
  'secret.change': {
    severity: 'notice',
    trap: false,
    meaning: 'a stored secret, a password or the master key was replaced',
    fields: ['user', ...CLIENT, 'object_type', 'object', 'account', 'domain', 'device', 'result', 'reason'],
    sentence: (f) =>
      deed(f, 'changed', 'change', `the secret of ${thing(f)}`) + (f.result === 'failure' ? '' : because(f)),
  },
  'sink.down': {
    severity: 'warning',
    trap: true,
    meaning: 'a receiver of events cannot be reached; written once, until it is back',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `the ${thing(f)} cannot be reached${because(f)}`,
  },
  'service.start': {
    severity: 'notice',
    trap: false,
    meaning: 'the broker is ready; `object` is its version',
    fields: ['object_type', 'object'],
    sentence: (f) => `sallyport ${f.object ?? ''} started`,
  },
  'service.stop': {
    severity: 'notice',
    trap: false,
    meaning: 'the broker stops',
    fields: ['object_type', 'object', 'reason'],
    sentence: (f) => `sallyport ${f.object ?? ''} stops${because(f)}`,
  },
} as const satisfies Record<string, EventKind>

export type EventCode = keyof typeof EVENTS

/** The fields that the catalogue lists for a code. */
export type FieldsOf<C extends EventCode> = Pick<EventFields, (typeof EVENTS)[C]['fields'][number]>

export const EVENT_CODES = Object.keys(EVENTS) as EventCode[]

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

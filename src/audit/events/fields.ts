/** What an event may carry, and what the catalogue says of each kind of event. Field names are contract.md's. */

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
  'signature',
  'signer',
  'count',
  'first',
  'last',
  'uid',
  'sudo_user',
  'format',
  'api_key',
] as const
export type EventField = (typeof EVENT_FIELDS)[number]
/** `duration` is in milliseconds, `size` and `bytes_…` are bytes. */
export type EventFields = Partial<Record<EventField, string | number>>

/** Fields that hold a number wherever they are present; all others are text. */
export const NUMERIC_FIELDS = [
  'client_port',
  'size',
  'duration',
  'bytes_in',
  'bytes_out',
  'count',
  'uid',
] as const

export interface EventKind {
  readonly severity: Severity
  readonly trap: boolean
  readonly meaning: string
  /** What it may carry; which of them are there depends on how far things had come. */
  readonly fields: readonly EventField[]
  readonly sentence: (fields: EventFields) => string
}

export const CLIENT = ['client_ip', 'client_port'] as const
/** Of a sign-in by key: its fingerprint, and of a certificate key id, serial and authority. */
export const KEY = ['digest', 'object_type', 'object'] as const
export const PLACE = ['account', 'domain', 'device', 'service'] as const
export const TARGET = [...PLACE, 'target_host'] as const
export const SESSION = ['session', 'user', 'api_key', ...CLIENT, 'protocol', ...TARGET] as const
/** Of refusals that were folded into one event: how many, and when the first and the last was. */
export const COUNTED = ['count', 'first', 'last'] as const
/** Of what the command line does: the system's user who ran it, and who became that user by sudo, as sudo says. */
export const LOCAL = ['uid', 'sudo_user'] as const
export const CHANNEL = [...SESSION, 'subprotocol'] as const
export const WATCH = [
  'session',
  'user',
  'profile',
  'api_key',
  ...CLIENT,
  'object_type',
  'object',
  'protocol',
  'account',
  'domain',
  'device',
  'service',
] as const
export const OBJECT = [
  'user',
  'profile',
  'api_key',
  ...CLIENT,
  'method',
  'object_type',
  'object',
  'changes',
  'result',
  'reason',
  ...LOCAL,
] as const

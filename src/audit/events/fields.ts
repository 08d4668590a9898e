/** The fields of events, and the shape of the catalogue's entries. Field names are those of docs/events.md. */

/** The least severe first. */
export const SEVERITIES = ['notice', 'warning', 'alert'] as const
export type Severity = (typeof SEVERITIES)[number]

/**
 * The ways of a sign-in, as in the field `method`. Their places are indexes of the MIB: a new one comes last.
 */
export const SIGN_IN_METHODS = [
  ...['password', 'keyboard-interactive', 'publickey', 'gssapi-with-mic', 'ticket', 'browser'],
  ...['api_password', 'api_key', 'page_password', 'negotiate', 'oidc', 'saml', 'bearer', 'provider'],
] as const

/** Fields of an event; the log, syslog's structured data and SNMP notifications have the same keys. */
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
  'ticket',
  'holder',
  'approval',
  'critical',
] as const
export type EventField = (typeof EVENT_FIELDS)[number]
/** `duration` is in milliseconds, `size` and `bytes_…` are bytes. */
export type EventFields = Partial<Record<EventField, string | number>>

/** Fields that are numbers; all others are text. */
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
  /** The fields that it may carry; some are absent if the action failed early. */
  readonly fields: readonly EventField[]
  readonly sentence: (fields: EventFields) => string
}

export const CLIENT = ['client_ip', 'client_port'] as const
/** Fields of a sign-in by key: its fingerprint, and for a certificate its key id, serial and authority. */
export const KEY = ['digest', 'object_type', 'object'] as const
export const PLACE = ['account', 'domain', 'device', 'service'] as const
export const TARGET = [...PLACE, 'target_host'] as const
export const SESSION = ['session', 'user', 'api_key', ...CLIENT, 'protocol', ...TARGET] as const
/**
 * Fields of refusals that were folded into one event: their number, and the time of the first and of the
 * last.
 */
export const COUNTED = ['count', 'first', 'last'] as const
/**
 * Fields of the command line: the system's user that ran it, and the user before sudo, as sudo reports it.
 */
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

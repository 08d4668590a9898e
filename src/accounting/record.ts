/** Records of accounting, made from events of the audit log. Each one stands for itself. */
import type { StoredEvent } from '../audit/chain.ts'
import type { EventCode } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'

export interface AccountedSession {
  /** Id of the session. */
  session: string
  /** Name as in the audit log: with its authentication domain, if it has one. */
  user: string
  /** Address of the client. */
  source: string
  protocol: string
  /** The target, as `account@domain@device:service`, as far as the session has these. */
  target: string
}

/** Octets from the client to the target, and back. */
export interface Octets {
  bytesIn: number
  bytesOut: number
}

export type AccountingRecord = AccountedSession & {
  /** Milliseconds since the epoch of what it reports. */
  time: number
  /** Class attributes that the server gets back (RFC 2865 5.25). */
  classes?: readonly Uint8Array[]
} & (
    | { kind: 'start' }
    /** The session runs. `elapsed`: milliseconds since its begin. `octets`: so far, where they are known. */
    | { kind: 'interim'; elapsed: number; octets?: Octets }
    /** `elapsed`: milliseconds; absent where the end was not seen. */
    | {
        kind: 'stop'
        elapsed?: number
        bytesIn: number
        bytesOut: number
        result: string
        reason: string
      }
    /** The bastion is there, and has no session: `on`; or leaves: `off`. Its session is empty. */
    | { kind: 'on' | 'off' }
    /** A recorded command line. `denied`: it did not reach the target. */
    | { kind: 'command'; command: string; result: string }
  )

/** Value of `method` of the start and stop of brokers of which one replaces the other. */
export const TAKEOVER = 'takeover'

const KINDS: Partial<Record<EventCode, AccountingRecord['kind']>> = {
  'session.open': 'start',
  'session.close': 'stop',
  command: 'command',
  'service.start': 'on',
  'service.stop': 'off',
}

/** Returns the kind of record that an event becomes, or undefined if it becomes none. */
export function kindOfRecord(code: EventCode): AccountingRecord['kind'] | undefined {
  return KINDS[code]
}

/** Returns the record, or undefined for an event that is none: of another kind, or a line that could not be read. */
export function recordOf({ code, time, fields }: StoredEvent): AccountingRecord | undefined {
  const kind = kindOfRecord(code)
  const session = text(fields.session)
  if ((kind === 'on' || kind === 'off') !== (session === '')) return undefined
  const about: AccountedSession & { time: number } = {
    session,
    user: text(fields.user),
    source: text(fields.client_ip),
    protocol: text(fields.protocol),
    target: targetText(fields),
    time,
  }
  switch (kind) {
    case 'on':
    case 'off':
      // Sessions run on in the other broker.
      return text(fields.method) === TAKEOVER ? undefined : { ...about, kind }
    case 'start':
      return { ...about, kind: 'start' }
    case 'stop':
      return {
        ...about,
        kind: 'stop',
        ...(fields.duration !== undefined && { elapsed: number(fields.duration) }),
        bytesIn: number(fields.bytes_in),
        bytesOut: number(fields.bytes_out),
        result: text(fields.result),
        reason: text(fields.reason),
      }
    case 'command': {
      const command = text(fields.object)
      return command === '' ? undefined : { ...about, kind: 'command', command, result: text(fields.result) }
    }
    default:
      return undefined
  }
}

/** Returns a target's name, as the audit log's sentences have it. */
export function targetText({
  account,
  domain,
  device,
  service,
}: Pick<EventFields, 'account' | 'domain' | 'device' | 'service'>): string {
  const names = [account, domain, device].map(text).filter((name) => name !== '')
  return `${names.join('@')}${service === undefined ? '' : `:${service}`}`
}

const text = (value: string | number | undefined): string => (value === undefined ? '' : String(value))
const number = (value: string | number | undefined): number => {
  const read = Number(value ?? 0)
  return Number.isFinite(read) && read > 0 ? read : 0
}

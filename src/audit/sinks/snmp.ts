/**
 * Events as SNMP notifications (config/SALLYPORT-MIB.txt): version 2c as trap or inform, version 3 as inform.
 * Every notification carries all objects that the MIB lists for it, in that order (RFC 2578 8.1); what does not
 * apply is an empty string or 0.
 */
import { isIPv6 } from 'node:net'
import snmp, { type Session, type Varbind } from 'net-snmp'
import type { TrapTarget } from '../../config/config.ts'
import { kindOf, TRAP_CODES } from '../catalogue.ts'
import type { StoredEvent } from '../chain.ts'
import { cut } from '../clean.ts'
import { EVENT_FIELDS, type EventField, NUMERIC_FIELDS } from '../fields.ts'
import { sentenceOf } from '../sentence.ts'
import { type After, Presence, type Sink, type SinkDown, systemAfter } from '../sink.ts'

/** Bytes of a text object: SallyportText in the MIB. */
const MAX_TEXT = 255
/** Notifications on their way: an inform stays there until its answer. */
const MAX_IN_FLIGHT = 1000
const TIMEOUT_MS = 5000
/** Of an inform, beyond the first attempt. */
const RETRIES = 2
const COUNTER64_FIELDS: readonly EventField[] = ['size', 'bytes_in', 'bytes_out']
const MAX_UNSIGNED32 = 0xffffffff

/** The number under sallyportEventObjects: 1 is the sentence, the fields follow in the catalogue's order. */
const SENTENCE_OBJECT = 1
const FIRST_FIELD_OBJECT = 2

const root = (enterprise: number) => `1.3.6.1.4.1.${enterprise}`

function text(oid: string, value: string): Varbind {
  return { oid, type: snmp.ObjectType.OctetString, value: Buffer.from(cut(value, MAX_TEXT)) }
}

function fieldVarbind(oid: string, field: EventField, value: string | number | undefined): Varbind {
  if (!NUMERIC_FIELDS.some((numeric) => numeric === field)) return text(oid, String(value ?? ''))
  const number = Math.max(0, Math.trunc(Number(value ?? 0))) || 0
  if (COUNTER64_FIELDS.includes(field)) {
    // net-snmp takes a Counter64 as eight bytes only
    const bytes = Buffer.alloc(8)
    bytes.writeBigUInt64BE(BigInt(Math.min(number, Number.MAX_SAFE_INTEGER)))
    return { oid, type: snmp.ObjectType.Counter64, value: bytes }
  }
  return { oid, type: snmp.ObjectType.Unsigned32, value: Math.min(number, MAX_UNSIGNED32) }
}

/** The notification of an event; undefined: the catalogue gives it none. */
export function notificationOf(
  event: StoredEvent,
  enterprise: number,
): { oid: string; varbinds: Varbind[] } | undefined {
  const number = TRAP_CODES.indexOf(event.code) + 1
  if (number === 0) return undefined
  const objects = `${root(enterprise)}.2`
  const varbinds = kindOf(event.code).fields.map((field) =>
    fieldVarbind(
      `${objects}.${EVENT_FIELDS.indexOf(field) + FIRST_FIELD_OBJECT}.0`,
      field,
      event.fields[field],
    ),
  )
  return {
    oid: `${root(enterprise)}.0.${number}`,
    varbinds: [text(`${objects}.${SENTENCE_OBJECT}.0`, sentenceOf(event)), ...varbinds],
  }
}

export interface SnmpOptions {
  target: TrapTarget
  enterprise: number
  onDown: SinkDown
  after?: After
}

export class SnmpSink implements Sink {
  readonly type = 'snmp'
  readonly address: string
  readonly #session: Session
  readonly #inform: boolean
  readonly #enterprise: number
  readonly #presence: Presence
  #closed = false
  queued = 0
  lost = 0

  constructor({ target, enterprise, onDown, after = systemAfter }: SnmpOptions) {
    const { host, port, inform } = target
    this.address = `udp://${isIPv6(host) ? `[${host}]` : host}:${port}`
    this.#enterprise = enterprise
    this.#inform = inform
    this.#presence = new Presence(after, (reason) => onDown(this, reason))
    this.#session = openSession(target)
    this.#session.on('error', (error) => this.#presence.failed(error.message))
  }

  send(event: StoredEvent): void {
    const notification = notificationOf(event, this.#enterprise)
    if (!notification) return
    if (this.#closed || this.queued >= MAX_IN_FLIGHT) {
      this.lost++
      return
    }
    this.queued++
    const done = (error: Error | null) => {
      this.queued--
      if (error) {
        this.lost++
        if (!this.#closed) this.#presence.failed(error.message)
      } else this.#presence.succeeded()
    }
    const { oid, varbinds } = notification
    try {
      if (this.#inform) this.#session.inform(oid, varbinds, done)
      else this.#session.trap(oid, varbinds, done)
    } catch (error) {
      done(error as Error)
    }
  }

  /** An inform that was not answered by now is given up. */
  async close(): Promise<void> {
    this.#closed = true
    this.#session.close()
  }
}

function openSession(target: TrapTarget): Session {
  const { host, port } = target
  const options = {
    transport: isIPv6(host) ? ('udp6' as const) : ('udp4' as const),
    timeout: TIMEOUT_MS,
    retries: RETRIES,
    backoff: 2,
    trapPort: port,
  }
  if (target.version === '2c') {
    return snmp.createSession(host, target.community.revealText(), { ...options, version: snmp.Version2c })
  }
  return snmp.createV3Session(
    host,
    {
      name: target.user,
      level: snmp.SecurityLevel.authPriv,
      authProtocol: snmp.AuthProtocols[target.auth],
      authKey: target.authPassword.revealText(),
      privProtocol: snmp.PrivProtocols[target.priv],
      privKey: target.privPassword.revealText(),
    },
    { ...options, version: snmp.Version3 },
  )
}

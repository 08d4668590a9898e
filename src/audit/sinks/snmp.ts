/**
 * Events as SNMP notifications (config/SALLYPORT-MIB.txt): version 2c as trap or inform, version 3 as inform.
 * Every notification has all objects that the MIB lists for it, in that order (RFC 2578 8.1); objects that do
 * not apply are an empty string or 0.
 */
import { isIPv6 } from 'node:net'
import snmp, { type Session, type Varbind } from 'net-snmp'
import type { TrapTarget } from '../../config/config.ts'
import type { StoredEvent } from '../chain.ts'
import { type EventCode, kindOf, TRAP_CODES } from '../events/catalogue.ts'
import { cut } from '../events/clean.ts'
import { EVENT_FIELDS, type EventField, NUMERIC_FIELDS } from '../events/fields.ts'
import { sentenceOf } from '../sentence.ts'
import type { Connection, ConnectionListener, Sink } from '../sink.ts'

/** Bytes of a text object: SallyportText in the MIB. */
const MAX_TEXT = 255
const TIMEOUT_MS = 5000
/** Retries of an inform, after the first attempt. */
const RETRIES = 2
const COUNTER64_FIELDS: readonly EventField[] = ['size', 'bytes_in', 'bytes_out']
const MAX_UNSIGNED32 = 0xffffffff

/** Number under sallyportEventObjects: 1 is the sentence, the fields follow in the catalogue's order. */
const SENTENCE_OBJECT = 1
const FIRST_FIELD_OBJECT = 2
/**
 * The row in the audit log, numbered apart from the fields, which grow. It ends every notification (RFC 2578
 * 8.1 allows more).
 */
const SEQUENCE_OBJECT = 1000

const root = (enterprise: number) => `1.3.6.1.4.1.${enterprise}`

function text(oid: string, value: string): Varbind {
  return { oid, type: snmp.ObjectType.OctetString, value: Buffer.from(cut(value, MAX_TEXT)) }
}

/** Returns a Counter64 as eight bytes, the only form that net-snmp accepts. */
function counter64(oid: string, number: number): Varbind {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(Math.min(number, Number.MAX_SAFE_INTEGER)))
  return { oid, type: snmp.ObjectType.Counter64, value: bytes }
}

function fieldVarbind(oid: string, field: EventField, value: string | number | undefined): Varbind {
  if (!NUMERIC_FIELDS.some((numeric) => numeric === field)) return text(oid, String(value ?? ''))
  const number = Math.max(0, Math.trunc(Number(value ?? 0))) || 0
  if (COUNTER64_FIELDS.includes(field)) return counter64(oid, number)
  return { oid, type: snmp.ObjectType.Unsigned32, value: Math.min(number, MAX_UNSIGNED32) }
}

/** Returns the notification of an event, or undefined if the catalogue lists none. */
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
    varbinds: [
      text(`${objects}.${SENTENCE_OBJECT}.0`, sentenceOf(event)),
      ...varbinds,
      counter64(`${objects}.${SEQUENCE_OBJECT}.0`, event.sequence),
    ],
  }
}

export interface SnmpOptions {
  target: TrapTarget
  enterprise: number
}

/**
 * An inform counts as received with its response, a trap when it was sent. One at a time, so that they keep
 * their order.
 */
export class SnmpSink implements Sink {
  readonly type = 'snmp'
  readonly address: string
  readonly identity: string
  readonly #target: TrapTarget
  readonly #enterprise: number

  constructor({ target, enterprise }: SnmpOptions) {
    const { host, port, inform, version } = target
    this.address = `udp://${isIPv6(host) ? `[${host}]` : host}:${port}`
    this.identity = `snmp ${this.address} ${version} ${inform ? 'inform' : 'trap'}`
    this.#target = target
    this.#enterprise = enterprise
  }

  wants(code: EventCode): boolean {
    return kindOf(code).trap
  }

  async connect({ settled, broken }: ConnectionListener): Promise<Connection> {
    const session = openSession(this.#target)
    session.on('error', (error) => broken(error.message))
    return {
      send: async (events) => {
        for (const event of events) {
          await this.#notify(session, event)
          settled(event.sequence)
        }
      },
      async close() {
        session.close()
      },
    }
  }

  #notify(session: Session, event: StoredEvent): Promise<void> {
    const notification = notificationOf(event, this.#enterprise)
    if (!notification) return Promise.resolve()
    const { oid, varbinds } = notification
    return new Promise((resolve, reject) => {
      const done = (error: Error | null) => (error ? reject(error) : resolve())
      if (this.#target.inform) session.inform(oid, varbinds, done)
      else session.trap(oid, varbinds, done)
    })
  }
}

function openSession(target: TrapTarget): Session {
  const { host, port } = target
  const options = {
    transport: isIPv6(host) ? ('udp6' as const) : ('udp4' as const),
    timeout: TIMEOUT_MS,
    retries: RETRIES,
    backoff: 2,
    // net-snmp uses the first port for the first inform of a version 3 session, and the second for the
    // following ones.
    trapPort: port,
    port,
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

/** Accounting at RADIUS servers (RFC 2866): sessions as Start, Interim-Update and Stop, and the bastion's own start and end. */
import { Buffer } from 'node:buffer'
import { nasIdentifierOf, type RadiusSettings } from '../identity/methods/radius/method.ts'
import {
  ATTRIBUTES,
  type Attribute,
  CODES,
  MAX_VALUE,
  RadiusError,
} from '../identity/methods/radius/packet.ts'
import { fittingClasses } from '../identity/methods/radius/person.ts'
import { RadiusServer } from '../identity/methods/radius/server.ts'
import { ServerOrder } from '../identity/methods/servers.ts'
import type { AccountingRecord, Octets } from './record.ts'
import { type AccountingSender, firstOf, plain, short } from './sender.ts'

export type Reported = Exclude<AccountingRecord, { kind: 'command' }>

/** Values of Acct-Status-Type (RFC 2866 5.1). */
const STATUS = {
  start: 1,
  stop: 2,
  interim: 3,
  on: 7,
  off: 8,
} as const satisfies Record<Reported['kind'], number>

/** Values of Acct-Terminate-Cause (RFC 2866 5.10). */
const CAUSES = { userRequest: 1, adminReset: 6, nasError: 9, nasReboot: 11 } as const

/** Values of Service-Type (a person signs in at a host) and of NAS-Port-Type (no line). */
const [LOGIN, VIRTUAL] = [1, 5]
const GIGAWORD = 2 ** 32

export class RadiusSender implements AccountingSender {
  readonly kinds = ['start', 'interim', 'stop', 'on', 'off'] as const
  readonly #servers: RadiusServer[]
  readonly #order: ServerOrder<RadiusServer>
  readonly #nasIdentifier: Attribute
  readonly #now: () => number

  /** @throws Error for an object without a port of accounting */
  constructor({ auth, secrets, now }: Pick<RadiusSettings, 'auth' | 'secrets' | 'now'>) {
    const { servers, timeoutMs, options } = auth
    const { accountingPort: port, requireMessageAuthenticator, tries } = options
    if (port === undefined) throw new Error(`${auth.authenticationName} has no port of accounting`)
    const { sharedSecret } = secrets
    this.#servers = servers.map(
      ({ host }) =>
        new RadiusServer({ host, port, sharedSecret, requireMessageAuthenticator, timeoutMs, tries }),
    )
    this.#order = new ServerOrder(this.#servers, now)
    this.#nasIdentifier = nasIdentifierOf(auth)
    this.#now = now
  }

  /** Resolves when an address is known: that a server is there shows with its first answer only. */
  async reach(signal: AbortSignal): Promise<void> {
    await firstOf(this.#order, (server) => server.address(signal), signal)
  }

  async send(record: AccountingRecord, signal: AbortSignal): Promise<void> {
    if (record.kind === 'command') throw new RadiusError('RADIUS has no record of commands')
    await firstOf(
      this.#order,
      async (server) => {
        const attributes = [this.#nasIdentifier, ...attributesOf(record, this.#now())]
        const { code } = await server.ask({ code: CODES.accountingRequest, attributes }, signal)
        if (code !== CODES.accountingResponse)
          throw new RadiusError(`${server.name}: expected Accounting-Response, got code ${code}`)
      },
      signal,
    )
  }

  async close(): Promise<void> {
    for (const server of this.#servers) server.drop()
  }
}

/** Returns all of a record but NAS-Identifier. */
export function attributesOf(record: Reported, now: number): Attribute[] {
  const { kind, session, user, source, protocol, target, time, classes = [] } = record
  const delay = Math.max(0, now - time)
  const texts: [number, string][] = [
    [ATTRIBUTES.acctSessionId, session || `${kind}-${time}`],
    [ATTRIBUTES.userName, user],
    [ATTRIBUTES.callingStationId, source],
    [ATTRIBUTES.calledStationId, target],
    [ATTRIBUTES.connectInfo, protocol],
  ]
  return [
    number(ATTRIBUTES.acctStatusType, STATUS[kind]),
    ...texts
      .filter(([, value]) => value !== '')
      .map(([type, value]) => ({ type, value: Buffer.from(short(plain(value), MAX_VALUE)) })),
    number(ATTRIBUTES.eventTimestamp, seconds(time)),
    number(ATTRIBUTES.acctDelayTime, seconds(delay)),
    ...(session === ''
      ? []
      : [number(ATTRIBUTES.serviceType, LOGIN), number(ATTRIBUTES.nasPortType, VIRTUAL)]),
    ...measured(record),
    ...fittingClasses(classes).map((value) => ({ type: ATTRIBUTES.class, value })),
  ]
}

/** Returns what is known of a session that has run for a while. */
function measured(record: Reported): Attribute[] {
  if (record.kind !== 'interim' && record.kind !== 'stop') return []
  const { elapsed } = record
  const time = elapsed === undefined ? [] : [number(ATTRIBUTES.acctSessionTime, seconds(elapsed))]
  if (record.kind === 'interim') return [...time, ...(record.octets ? octetsOf(record.octets) : [])]
  return [...time, ...octetsOf(record), number(ATTRIBUTES.acctTerminateCause, causeOf(record))]
}

function octetsOf({ bytesIn, bytesOut }: Octets): Attribute[] {
  return [
    number(ATTRIBUTES.acctInputOctets, bytesIn % GIGAWORD),
    number(ATTRIBUTES.acctInputGigawords, Math.floor(bytesIn / GIGAWORD)),
    number(ATTRIBUTES.acctOutputOctets, bytesOut % GIGAWORD),
    number(ATTRIBUTES.acctOutputGigawords, Math.floor(bytesOut / GIGAWORD)),
  ]
}

function causeOf({ elapsed, result }: Extract<Reported, { kind: 'stop' }>): number {
  if (result === 'success') return CAUSES.userRequest
  if (result === 'killed') return CAUSES.adminReset
  return elapsed === undefined ? CAUSES.nasReboot : CAUSES.nasError
}

const seconds = (ms: number): number => Math.floor(ms / 1000)

function number(type: number, value: number): Attribute {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(Math.min(value, GIGAWORD - 1))
  return { type, value: bytes }
}

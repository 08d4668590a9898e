/** Messages between a client and a KDC (RFC 4120 section 5): requests built, answers read. */
import { Buffer } from 'node:buffer'
import { context, DerReader, der, integer, octets, sequence, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { ENCRYPTION_TYPES, type EncryptionType, encryptionType } from './encryption.ts'
import { applicationTag, Fields, flags, readAll, text, time } from './fields.ts'

export const VERSION = 5
export const MESSAGE = {
  AS_REQ: 10,
  AS_REP: 11,
  TGS_REQ: 12,
  TGS_REP: 13,
  AP_REQ: 14,
  AP_REP: 15,
  CRED: 22,
  ERROR: 30,
} as const
export const PART = {
  TICKET: 1,
  AUTHENTICATOR: 2,
  ENC_TICKET: 3,
  ENC_AS_REP: 25,
  ENC_TGS_REP: 26,
  ENC_AP_REP: 27,
  ENC_CRED: 29,
} as const
const PA = { TGS_REQ: 1, ENC_TIMESTAMP: 2, ETYPE_INFO2: 19 } as const
const NAME = { PRINCIPAL: 1, SERVICE: 2 } as const
/** Usages of keys (RFC 4120 section 7.5.1, RFC 4121 section 2). */
export const USAGE = {
  TIMESTAMP: 1,
  TICKET: 2,
  AS_REP: 3,
  TGS_BODY: 6,
  TGS_AUTHENTICATOR: 7,
  TGS_REP: 8,
  AP_AUTHENTICATOR: 11,
  AP_REP: 12,
  CRED: 14,
  ACCEPTOR_SEAL: 22,
  ACCEPTOR_SIGN: 23,
  INITIATOR_SEAL: 24,
  INITIATOR_SIGN: 25,
} as const

/** The flag `invalid` of a ticket (RFC 4120 section 5.3). */
const INVALID = 1 << 24

export interface Key {
  type: EncryptionType
  bytes: Buffer
}

export interface Sealed {
  /** Number of the encryption type; it may be one that is not spoken. */
  type: number
  /** Version of the key. */
  version?: number
  bytes: Uint8Array
}

/** Answer of a KDC, as yet encrypted. */
export interface KdcReply {
  realm: string
  client: string[]
  /** The whole ticket, as it is shown on. */
  ticket: Uint8Array
  sealed: Sealed
  hints: Hint[]
}

/** How the KDC makes the key of the password: ETYPE-INFO2. */
export interface Hint {
  type: number
  salt?: string
  parameters: Uint8Array
}

export interface KdcError {
  code: number
  /** The KDC's clock, in milliseconds since the epoch. */
  serverTime: number
  text: string
  hints: Hint[]
}

export interface RequestBody {
  /** Given for an AS-REQ. */
  client?: string
  realm: string
  service: readonly string[]
  /** Milliseconds since the epoch. */
  till: number
  nonce: number
}

/** Encodes KDC-REQ-BODY. No option is asked for: the ticket is neither forwardable nor renewable. */
export function requestBody({ client, realm, service, till, nonce }: RequestBody): Buffer {
  return sequence(
    context(0, flags(0)),
    ...(client === undefined ? [] : [context(1, principal(NAME.PRINCIPAL, [client]))]),
    context(2, text(realm)),
    context(3, principal(NAME.SERVICE, service)),
    context(5, time(till)),
    context(7, integer(nonce)),
    context(8, sequence(...ENCRYPTION_TYPES.map(({ number }) => integer(number)))),
  )
}

/** Builds an AS-REQ; with `timestamp`, it proves the password (PA-ENC-TIMESTAMP). */
export function asRequest(body: Uint8Array, timestamp?: { key: Key; now: number }): Buffer {
  const proof = timestamp && [context(3, sequence(padata(PA.ENC_TIMESTAMP, sealedTime(timestamp))))]
  return message(MESSAGE.AS_REQ, ...(proof ?? []), context(4, body))
}

/** Builds a TGS-REQ by a ticket and its key. `now`: milliseconds since the epoch. */
export function tgsRequest(body: Uint8Array, shown: ShownTicket, now: number): Buffer {
  const { type, bytes } = shown.key
  const checksum = { type: type.checksumType, bytes: type.checksum(bytes, USAGE.TGS_BODY, body) }
  const request = apRequest(shown, { usage: USAGE.TGS_AUTHENTICATOR, options: 0, checksum, now })
  return message(MESSAGE.TGS_REQ, context(3, sequence(padata(PA.TGS_REQ, request))), context(4, body))
}

/** A ticket, its owner and its key. */
export interface ShownTicket {
  realm: string
  client: readonly string[]
  ticket: Uint8Array
  key: Key
}

/** The proof beside a shown ticket. */
export interface ShownProof {
  /** Usage of the ticket's key. */
  usage: number
  options: number
  checksum: Checksum
  /** Milliseconds since the epoch. */
  now: number
  /** Key for what follows. */
  key?: Key
  /** Number of the first message that follows. */
  first?: number
}

export interface Checksum {
  type: number
  bytes: Uint8Array
}

/** Builds an AP-REQ, with its authenticator. */
export function apRequest(
  { realm, client, ticket, key }: ShownTicket,
  { usage, options, checksum, now, key: next, first }: ShownProof,
): Buffer {
  const authenticator = der(
    applicationTag(PART.AUTHENTICATOR),
    sequence(
      context(0, integer(VERSION)),
      context(1, text(realm)),
      context(2, principal(NAME.PRINCIPAL, client)),
      context(3, sequence(context(0, integer(checksum.type)), context(1, octets(checksum.bytes)))),
      context(4, integer((now % 1000) * 1000)),
      context(5, time(now)),
      ...(next
        ? [context(6, sequence(context(0, integer(next.type.number)), context(1, octets(next.bytes))))]
        : []),
      ...(first === undefined ? [] : [context(7, integer(first))]),
    ),
  )
  return der(
    applicationTag(MESSAGE.AP_REQ),
    sequence(
      context(0, integer(VERSION)),
      context(1, integer(MESSAGE.AP_REQ)),
      context(2, flags(options)),
      context(3, ticket),
      context(4, encrypted(key, usage, authenticator)),
    ),
  )
}

/** Reads the answer to an AS-REQ or TGS-REQ. @throws MalformedError */
export function readKdcAnswer(bytes: Uint8Array, kind: 'AS_REP' | 'TGS_REP'): KdcReply | KdcError {
  const what = `Kerberos ${kind.replace('_', '-')}`
  if (bytes[0] === applicationTag(MESSAGE.ERROR)) return readError(bytes)
  const fields = Fields.ofMessage(bytes, MESSAGE[kind], what)
  requireHead(fields, 0, MESSAGE[kind], what)
  return {
    realm: fields.text(3),
    client: fields.name(4),
    ticket: fields.whole(5),
    sealed: readSealed(fields.sequence(6)),
    hints: fields.has(2) ? hintsOf(fields.list(2), what) : [],
  }
}

/** @throws MalformedError */
export function readError(bytes: Uint8Array): KdcError {
  const what = 'Kerberos KRB-ERROR'
  const fields = Fields.ofMessage(bytes, MESSAGE.ERROR, what)
  requireHead(fields, 0, MESSAGE.ERROR, what)
  const code = fields.uint32(6)
  const isHinted = fields.has(12) && code === 25
  return {
    code,
    serverTime: fields.time(4),
    text: fields.has(11) ? fields.text(11) : '',
    hints: isHinted ? hintsOf(new DerReader(fields.octets(12), what).enter(TAG.SEQUENCE), what) : [],
  }
}

/** The encrypted part of a KDC's answer, that only the owner of the key can read. */
export interface ReplyPart {
  key: Key
  nonce: number
  /** Milliseconds since the epoch. */
  endTime: number
  realm: string
  service: string[]
}

/** @throws MalformedError, IntegrityError */
export function readReplyPart({ sealed }: KdcReply, key: Key, usage: number): ReplyPart {
  const what = "a KDC's encrypted answer"
  const plain = decrypted(sealed, key, usage)
  // RFC 4120 5.4.2: some KDCs write the number of the TGS's part in answers to an AS-REQ.
  const number = plain[0] === applicationTag(PART.ENC_TGS_REP) ? PART.ENC_TGS_REP : PART.ENC_AS_REP
  const fields = Fields.ofMessage(plain, number, what)
  return {
    key: readKey(fields.sequence(0)),
    nonce: fields.uint32(2),
    endTime: fields.time(7),
    realm: fields.text(9),
    service: fields.name(10),
  }
}

/** Names and encrypted part of a ticket. */
export interface Ticket {
  realm: string
  service: string[]
  sealed: Sealed
}

/** @throws MalformedError */
export function readTicket(bytes: Uint8Array): Ticket {
  const fields = Fields.ofMessage(bytes, PART.TICKET, 'a Kerberos ticket')
  return { realm: fields.text(1), service: fields.name(2), sealed: readSealed(fields.sequence(3)) }
}

/** Content of a ticket, decrypted by the service's key. */
export interface TicketPart {
  key: Key
  realm: string
  client: string[]
  /** The KDC has not made it valid yet. */
  isInvalid: boolean
  /** Milliseconds since the epoch. */
  startTime: number
  endTime: number
}

/** @throws MalformedError, IntegrityError */
export function readTicketPart({ sealed }: Ticket, key: Key): TicketPart {
  const plain = decrypted(sealed, key, USAGE.TICKET)
  const fields = Fields.ofMessage(plain, PART.ENC_TICKET, 'the encrypted part of a ticket')
  return {
    key: readKey(fields.sequence(1)),
    realm: fields.text(2),
    client: fields.name(3),
    isInvalid: (fields.bits(0) & INVALID) !== 0,
    startTime: fields.time(fields.has(6) ? 6 : 5),
    endTime: fields.time(7),
  }
}

/** @throws MalformedError, IntegrityError */
export function decrypted(sealed: Sealed, key: Key, usage: number): Buffer {
  if (sealed.type !== key.type.number)
    throw new MalformedError(`Kerberos: encryption type ${key.type.name} was expected, got ${sealed.type}`)
  return key.type.decrypt(key.bytes, usage, sealed.bytes)
}

/** @throws MalformedError */
export function readKey(fields: Fields): Key {
  const number = fields.uint32(0)
  const type = encryptionType(number)
  const bytes = Buffer.from(fields.octets(1))
  if (!type || bytes.length !== type.keyBytes)
    throw new MalformedError(`Kerberos: an AES key was expected, got ${bytes.length} bytes of type ${number}`)
  return { type, bytes }
}

/** @throws MalformedError */
export function readSealed(fields: Fields): Sealed {
  const version = fields.has(1) ? { version: fields.uint32(1) } : {}
  return { type: fields.uint32(0), ...version, bytes: fields.octets(2) }
}

/** Reads ETYPE-INFO2 of a list of padata; other kinds are passed by. */
function hintsOf(list: DerReader, what: string): Hint[] {
  const entries = readAll(list, what, () => new Fields(list.take(TAG.SEQUENCE), what))
  const found = entries.find((entry) => entry.uint32(1) === PA.ETYPE_INFO2)
  if (!found) return []
  const reader = new DerReader(found.octets(2), what).enter(TAG.SEQUENCE)
  return readAll(reader, what, () => {
    const entry = new Fields(reader.take(TAG.SEQUENCE), what)
    return {
      type: entry.uint32(0),
      ...(entry.has(1) && { salt: entry.text(1) }),
      parameters: entry.has(2) ? entry.octets(2) : Buffer.alloc(0),
    }
  })
}

/** @throws MalformedError unless the fields `first` and after it are the version and this type */
export function requireHead(fields: Fields, first: number, type: number, what: string): void {
  const [version, found] = [fields.uint32(first), fields.uint32(first + 1)]
  if (version !== VERSION || found !== type)
    throw new MalformedError(`${what}: version 5 and type ${type} were expected, got ${version} and ${found}`)
}

function message(type: number, ...rest: Uint8Array[]): Buffer {
  return der(applicationTag(type), sequence(context(1, integer(VERSION)), context(2, integer(type)), ...rest))
}

const padata = (type: number, value: Uint8Array): Buffer =>
  sequence(context(1, integer(type)), context(2, octets(value)))

/** Encodes a PrincipalName. */
export const principal = (type: number, components: readonly string[]): Buffer =>
  sequence(context(0, integer(type)), context(1, sequence(...components.map(text))))

function sealedTime({ key, now }: { key: Key; now: number }): Buffer {
  return encrypted(
    key,
    USAGE.TIMESTAMP,
    sequence(context(0, time(now)), context(1, integer((now % 1000) * 1000))),
  )
}

/** Encodes EncryptedData. */
export function encrypted({ type, bytes }: Key, usage: number, plain: Uint8Array): Buffer {
  return sequence(context(0, integer(type.number)), context(2, octets(type.encrypt(bytes, usage, plain))))
}

/** Messages between a client and a service (RFC 4120 section 5.5): AP-REQ read, AP-REP built and read. */
import type { Buffer } from 'node:buffer'
import { context, der, integer, sequence } from '../../proxies/bytes/der.ts'
import { applicationTag, Fields, time } from './fields.ts'
import {
  type Checksum,
  decrypted,
  encrypted,
  type Key,
  MESSAGE,
  PART,
  readKey,
  readSealed,
  readTicket,
  requireHead,
  type Sealed,
  type Ticket,
  USAGE,
  VERSION,
} from './messages.ts'

/** Options of an AP-REQ. */
const USE_SESSION_KEY = 1 << 30
export const MUTUAL = 1 << 29

export interface ApRequest {
  /** The client wants a proof of ours. */
  wantsAnswer: boolean
  /** The ticket is sealed with the key of another ticket (user to user), and not with one of a keytab. */
  isUserToUser: boolean
  ticket: Ticket
  sealed: Sealed
}

/** @throws MalformedError */
export function readApRequest(bytes: Uint8Array): ApRequest {
  const what = 'Kerberos AP-REQ'
  const fields = Fields.ofMessage(bytes, MESSAGE.AP_REQ, what)
  requireHead(fields, 0, MESSAGE.AP_REQ, what)
  const options = fields.bits(2)
  return {
    wantsAnswer: (options & MUTUAL) !== 0,
    isUserToUser: (options & USE_SESSION_KEY) !== 0,
    ticket: readTicket(fields.whole(3)),
    sealed: readSealed(fields.sequence(4)),
  }
}

/** The client's proof that it has the key of its ticket. */
export interface Authenticator {
  realm: string
  client: string[]
  checksum?: Checksum
  /** Whole seconds of the client's clock, in milliseconds since the epoch. */
  time: number
  /** Millionths of a second after `time`. */
  micros: number
  /** Key for what follows; absent: that of the ticket. */
  key?: Key
  /** Number of the client's first message. */
  first: number
}

/** @throws MalformedError, IntegrityError */
export function readAuthenticator(sealed: Sealed, key: Key): Authenticator {
  const what = 'a Kerberos authenticator'
  const plain = decrypted(sealed, key, USAGE.AP_AUTHENTICATOR)
  const fields = Fields.ofMessage(plain, PART.AUTHENTICATOR, what)
  const checksum = fields.has(3) && fields.sequence(3)
  return {
    realm: fields.text(1),
    client: fields.name(2),
    ...(checksum && { checksum: { type: checksum.uint32(0), bytes: checksum.octets(1) } }),
    micros: fields.uint32(4),
    time: fields.time(5),
    ...(fields.has(6) && { key: readKey(fields.sequence(6)) }),
    first: fields.has(7) ? fields.uint32(7) : 0,
  }
}

/** Builds an AP-REP, which proves that we could open the ticket. `first`: sequence number of our first message. */
export function apReply(
  { time: at, micros }: Pick<Authenticator, 'time' | 'micros'>,
  key: Key,
  first: number,
): Buffer {
  const part = der(
    applicationTag(PART.ENC_AP_REP),
    sequence(context(0, time(at)), context(1, integer(micros)), context(3, integer(first))),
  )
  return der(
    applicationTag(MESSAGE.AP_REP),
    sequence(
      context(0, integer(VERSION)),
      context(1, integer(MESSAGE.AP_REP)),
      context(2, encrypted(key, USAGE.AP_REP, part)),
    ),
  )
}

/** The service's proof that it could open the ticket. */
export interface ApReply {
  /** Time of the authenticator, as it was sent. */
  time: number
  micros: number
  /** Key for what follows; absent: the client's. */
  key?: Key
  /** Number of the service's first message. */
  first: number
}

/** @throws MalformedError, IntegrityError */
export function readApReply(bytes: Uint8Array, key: Key): ApReply {
  const what = 'Kerberos AP-REP'
  const message = Fields.ofMessage(bytes, MESSAGE.AP_REP, what)
  requireHead(message, 0, MESSAGE.AP_REP, what)
  const plain = decrypted(readSealed(message.sequence(2)), key, USAGE.AP_REP)
  const fields = Fields.ofMessage(plain, PART.ENC_AP_REP, what)
  return {
    time: fields.time(0),
    micros: fields.uint32(1),
    ...(fields.has(2) && { key: readKey(fields.sequence(2)) }),
    first: fields.has(3) ? fields.uint32(3) : 0,
  }
}

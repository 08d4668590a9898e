/** Messages of SNMP: version 2c (RFC 1901), and version 3 with the User-based Security Model (RFC 3412, RFC 3414). */
import { Buffer } from 'node:buffer'
import { DerReader, der, integer, octets, sequence, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { requireEnd } from './pdu.ts'

/** A PDU as its tag and value. */
export interface RawPdu {
  tag: number
  body: Uint8Array
}

export interface CommunityMessage {
  version: '2c'
  community: Uint8Array
  pdu: RawPdu
}

export interface SecuredMessage {
  version: '3'
  /** All of it, of which the other fields are views. */
  bytes: Uint8Array
  id: number
  /** Bytes that the sender accepts. */
  maxSize: number
  isSigned: boolean
  isEncrypted: boolean
  /** Whether the sender gets a report of what is wrong. */
  isReportable: boolean
  engineId: Uint8Array
  boots: number
  time: number
  user: Uint8Array
  digest: Uint8Array
  salt: Uint8Array
  /** The scoped PDU, in clear or encrypted. */
  data: Uint8Array
}

/** A version that is not served: 1 (RFC 1157), and those that were never standards. */
export class VersionError extends Error {
  override name = 'VersionError'
}

const VERSION_2C = 1
const VERSION_3 = 3
/** The User-based Security Model (RFC 3411 5). */
const SECURITY_MODEL = 3
const SIGNED = 1
const ENCRYPTED = 2
const REPORTABLE = 4
/** RFC 3412 6. */
const LEAST_MAX_SIZE = 484
const ENGINE_ID_LIMIT = 32
const USER_LIMIT = 32
const WHAT = 'a message of SNMP'

/** Throws MalformedError, or VersionError. */
export function readMessage(bytes: Uint8Array): CommunityMessage | SecuredMessage {
  const outer = new DerReader(bytes, WHAT)
  const reader = outer.enter(TAG.SEQUENCE)
  requireEnd(outer)
  const version = reader.uint32()
  if (version === VERSION_2C) {
    const community = reader.take(TAG.OCTET_STRING)
    const pdu = reader.any()
    requireEnd(reader)
    return { version: '2c', community, pdu }
  }
  if (version !== VERSION_3)
    throw new VersionError(`version 2c or 3 was expected, found the number ${version}`)
  const header = reader.enter(TAG.SEQUENCE)
  const [id, maxSize] = [header.uint32() | 0, header.uint32()]
  const flags = header.take(TAG.OCTET_STRING)
  const model = header.uint32()
  requireEnd(header)
  const { isSigned, isEncrypted, isReportable } = readFlags(flags)
  if (model !== SECURITY_MODEL) throw new MalformedError(`security model 3 was expected, found ${model}`)
  const wrapped = new DerReader(reader.take(TAG.OCTET_STRING), WHAT)
  const security = wrapped.enter(TAG.SEQUENCE)
  requireEnd(wrapped)
  const engineId = atMost(security.take(TAG.OCTET_STRING), ENGINE_ID_LIMIT)
  const [boots, time] = [security.uint32(), security.uint32()]
  const user = atMost(security.take(TAG.OCTET_STRING), USER_LIMIT)
  const [digest, salt] = [security.take(TAG.OCTET_STRING), security.take(TAG.OCTET_STRING)]
  requireEnd(security)
  const data = isEncrypted ? reader.take(TAG.OCTET_STRING) : reader.any().whole
  requireEnd(reader)
  return {
    version: '3',
    bytes,
    id,
    maxSize: Math.max(LEAST_MAX_SIZE, maxSize),
    ...{ isSigned, isEncrypted, isReportable },
    ...{ engineId, boots, time, user, digest, salt, data },
  }
}

function readFlags(bytes: Uint8Array) {
  const [flags = 0] = bytes
  const isEncrypted = (flags & ENCRYPTED) !== 0
  const isSigned = (flags & SIGNED) !== 0
  if (bytes.length !== 1 || (isEncrypted && !isSigned)) {
    throw new MalformedError('one byte of flags was expected, with encryption only where there is a digest')
  }
  return { isSigned, isEncrypted, isReportable: (flags & REPORTABLE) !== 0 }
}

function atMost(bytes: Uint8Array, limit: number): Uint8Array {
  if (limit < bytes.length)
    throw new MalformedError(`at most ${limit} bytes were expected, found ${bytes.length}`)
  return bytes
}

export interface ScopedPdu {
  contextEngineId: Uint8Array
  context: Uint8Array
  pdu: RawPdu
}

/** Ignores what is behind: block ciphers pad. Throws MalformedError. */
export function readScopedPdu(bytes: Uint8Array): ScopedPdu {
  const reader = new DerReader(bytes, 'a scoped PDU of SNMP').enter(TAG.SEQUENCE)
  const [contextEngineId, context] = [reader.take(TAG.OCTET_STRING), reader.take(TAG.OCTET_STRING)]
  const pdu = reader.any()
  requireEnd(reader)
  return { contextEngineId, context, pdu }
}

export const scopedPdu = (engineId: Uint8Array, pdu: Uint8Array): Buffer =>
  sequence(octets(engineId), octets(new Uint8Array()), pdu)

export const communityMessage = (community: Uint8Array, pdu: Uint8Array): Buffer =>
  sequence(integer(VERSION_2C), octets(community), pdu)

export interface Secured {
  id: number
  maxSize: number
  engineId: Uint8Array
  boots: number
  time: number
  user: Uint8Array
  /** Of the scoped PDU, `encrypted` if there is a salt. */
  data: Uint8Array
  salt?: Uint8Array
  /** Absent: the message is not signed. */
  sign?: { length: number; digest: (message: Uint8Array) => Uint8Array }
}

/** Builds an answer or a report, which none is reported about. */
export function securedMessage(message: Secured): Buffer {
  const { id, maxSize, engineId, boots, time, user, data, salt, sign } = message
  const build = (digest: Uint8Array): Buffer =>
    sequence(
      integer(VERSION_3),
      sequence(
        integer(id),
        integer(maxSize),
        octets(Buffer.from([(sign ? SIGNED : 0) | (salt ? ENCRYPTED : 0)])),
        integer(SECURITY_MODEL),
      ),
      octets(
        sequence(
          octets(engineId),
          integer(boots),
          integer(time),
          octets(user),
          octets(digest),
          octets(salt ?? new Uint8Array()),
        ),
      ),
      salt ? der(TAG.OCTET_STRING, data) : data,
    )
  const blank = build(new Uint8Array(sign?.length ?? 0))
  return sign ? build(sign.digest(blank)) : blank
}

/** Kerberos as a mechanism of the GSS-API (RFC 4121): frames of tokens, the checksum with flags, signatures (MIC). */
import { Buffer } from 'node:buffer'
import { timingSafeEqual } from 'node:crypto'
import { DerReader, der, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { type Key, USAGE } from './messages.ts'

/** 1.2.840.113554.1.2.2, in DER. */
export const KERBEROS_OID = Buffer.from('06092a864886f712010202', 'hex')
/** Longest token: tickets of Active Directory carry the groups of their owner. */
export const MAX_TOKEN = 65_536
const AP_REQ = Buffer.from([1, 0])
const AP_REP = Buffer.from([2, 0])
/** Type of the checksum that holds the flags (4.1.1). */
const FLAGS_CHECKSUM = 0x8003
const BINDING_BYTES = 16
const FLAGS_AT = 4 + BINDING_BYTES
const MUTUAL = 2
/** Start of a MIC by an initiator, under a key that is not the acceptor's. */
const MIC_HEAD = Buffer.from([4, 4, 0, 255, 255, 255, 255, 255])
const MIC_HEADER = 16

/** Returns the AP-REQ of a first token. @throws MalformedError */
export function readFirstToken(token: Uint8Array): Uint8Array {
  const what = 'a Kerberos token'
  if (token.length > MAX_TOKEN)
    throw new MalformedError(`${what} of at most ${MAX_TOKEN} bytes was expected, got ${token.length}`)
  const frame = new DerReader(token, what)
  const parts = frame.enter(TAG.APPLICATION)
  const oid = parts.any().whole
  if (!KERBEROS_OID.equals(oid))
    throw new MalformedError(
      `${what}: the identifier of Kerberos was expected, got ${Buffer.from(oid).toString('hex')}`,
    )
  // The two bytes of the token's kind read as an empty value.
  const kind = parts.any().whole
  const request = parts.any().whole
  if (!AP_REQ.equals(kind) || !parts.isAtEnd || !frame.isAtEnd)
    throw new MalformedError(
      `${what}: one AP-REQ was expected, got kind ${Buffer.from(kind).toString('hex')}`,
    )
  return request
}

export const replyToken = (reply: Uint8Array): Buffer => der(TAG.APPLICATION, KERBEROS_OID, AP_REP, reply)

/**
 * Returns whether the client asks for a proof of ours. Bindings to a channel are not judged, and a delegated ticket is
 * left where it is. @throws MalformedError
 */
export function isMutual(checksum: { type: number; bytes: Uint8Array } | undefined): boolean {
  const bytes = checksum && Buffer.from(checksum.bytes)
  if (
    !bytes ||
    checksum.type !== FLAGS_CHECKSUM ||
    bytes.length < FLAGS_AT + 4 ||
    bytes.readUInt32LE() !== BINDING_BYTES
  )
    throw new MalformedError(
      `a Kerberos authenticator: a checksum of the GSS-API was expected, got type ${checksum?.type ?? 'none'}`,
    )
  return (bytes.readUInt32LE(FLAGS_AT) & MUTUAL) !== 0
}

/** Returns whether the initiator has signed the message (4.2.6.1); its sequence number is not judged. */
export function isSigned({ type, bytes }: Key, message: Uint8Array, mic: Uint8Array): boolean {
  const header = mic.subarray(0, MIC_HEADER)
  const found = mic.subarray(MIC_HEADER)
  if (header.length < MIC_HEADER || !MIC_HEAD.equals(header.subarray(0, MIC_HEAD.length))) return false
  const made = type.checksum(bytes, USAGE.INITIATOR_SIGN, Buffer.concat([message, header]))
  return found.length === made.length && timingSafeEqual(found, made)
}

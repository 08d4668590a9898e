/** Kerberos as a mechanism of the GSS-API (RFC 4121): frames of the first tokens, and the checksum with flags. */
import { Buffer } from 'node:buffer'
import { DerReader, der, TAG } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import type { Checksum } from './messages.ts'

/** 1.2.840.113554.1.2.2, in DER. */
export const KERBEROS_OID = Buffer.from('06092a864886f712010202', 'hex')
/** Longest token: tickets of Active Directory carry the groups of their owner. */
export const MAX_TOKEN = 65_536
/** First byte of a token's kind (4.1); the second is 0. */
export const KIND = { AP_REQ: 1, AP_REP: 2, ERROR: 3 } as const
/** Type of the checksum that holds the flags (4.1.1). */
const FLAGS_CHECKSUM = 0x8003
const BINDING_BYTES = 16
const FLAGS_AT = 4 + BINDING_BYTES
const DELEGATED_AT = FLAGS_AT + 4
const FLAG = { DELEGATED: 1, MUTUAL: 2, REPLAY: 4, SEQUENCE: 8, SEALED: 16, SIGNED: 32 } as const
const ASKED = FLAG.MUTUAL | FLAG.REPLAY | FLAG.SEQUENCE | FLAG.SEALED | FLAG.SIGNED
/** Longest delegated KRB-CRED. */
const MAX_DELEGATED = 0xffff

/** Returns the message of a token, and its kind. @throws MalformedError */
export function readFrame(token: Uint8Array): { kind: number; message: Uint8Array } {
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
  const { tag: kind, body } = parts.any()
  const message = parts.any().whole
  if (body.length > 0 || !parts.isAtEnd || !frame.isAtEnd)
    throw new MalformedError(`${what}: one message was expected behind the kind ${kind}`)
  return { kind, message }
}

/** Returns the AP-REQ of a first token. @throws MalformedError */
export function readFirstToken(token: Uint8Array): Uint8Array {
  const { kind, message } = readFrame(token)
  if (kind !== KIND.AP_REQ)
    throw new MalformedError(`a Kerberos token: one AP-REQ was expected, got kind ${kind}`)
  return message
}

export const frameOf = (kind: number, message: Uint8Array): Buffer =>
  der(TAG.APPLICATION, KERBEROS_OID, Buffer.from([kind, 0]), message)

/** Parts of the checksum of an initiator. */
export interface GssFlags {
  /** MD5 of the channel bindings, 16 bytes; none if absent. */
  bindings?: Uint8Array | undefined
  /** A KRB-CRED for the service: a ticket by which it acts for the client. */
  delegated?: Uint8Array | undefined
}

/** Builds the checksum that asks for a proof of the service, and for sealed and signed messages in sequence. */
export function flagsChecksum({ bindings, delegated }: GssFlags): Checksum {
  const head = Buffer.alloc(FLAGS_AT + 4)
  head.writeUInt32LE(BINDING_BYTES)
  if (bindings) head.set(bindings.subarray(0, BINDING_BYTES), 4)
  head.writeUInt32LE(ASKED | (delegated ? FLAG.DELEGATED : 0), FLAGS_AT)
  if (!delegated) return { type: FLAGS_CHECKSUM, bytes: head }
  if (delegated.length > MAX_DELEGATED)
    throw new MalformedError(
      `a Kerberos KRB-CRED of at most ${MAX_DELEGATED} bytes was expected, got ${delegated.length}`,
    )
  const option = Buffer.alloc(4)
  option.writeUInt16LE(1)
  option.writeUInt16LE(delegated.length, 2)
  return { type: FLAGS_CHECKSUM, bytes: Buffer.concat([head, option, delegated]) }
}

/** Parts of a checksum, as they were read. */
export interface ReadFlags {
  /** It asks for a proof of ours. */
  isMutual: boolean
  /** A KRB-CRED, unread. */
  delegated?: Uint8Array
}

/** Reads the checksum of an initiator. Bindings to a channel are not judged. @throws MalformedError */
export function readFlagsChecksum(checksum: Checksum | undefined): ReadFlags {
  const bytes = checksum && Buffer.from(checksum.bytes)
  if (
    !bytes ||
    checksum.type !== FLAGS_CHECKSUM ||
    bytes.length < DELEGATED_AT ||
    bytes.readUInt32LE() !== BINDING_BYTES
  )
    throw new MalformedError(
      `a Kerberos authenticator: a checksum of the GSS-API was expected, got type ${checksum?.type ?? 'none'}`,
    )
  const flags = bytes.readUInt32LE(FLAGS_AT)
  const isMutual = (flags & FLAG.MUTUAL) !== 0
  if ((flags & FLAG.DELEGATED) === 0) return { isMutual }
  const begin = DELEGATED_AT + 4
  const length = bytes.length < begin ? 0 : bytes.readUInt16LE(DELEGATED_AT + 2)
  // Extensions may follow.
  if (length === 0 || bytes.length < begin + length)
    throw new MalformedError(
      `a Kerberos authenticator: a delegated ticket of ${length} bytes was expected, got ${bytes.length - begin}`,
    )
  return { isMutual, delegated: bytes.subarray(begin, begin + length) }
}

/**
 * OpenSSH's certificates (PROTOCOL.certkeys): a key with its owner and validity, signed by an authority; and the checks
 * of user certificates (for hosts see host-certificate.ts).
 *
 *     string    TYPE-cert-v01@openssh.com
 *     string    nonce
 *     …         the key's fields, as in its own blob
 *     uint64    serial
 *     uint32    1: of a user, 2: of a host
 *     string    key id
 *     string    principals, each a string
 *     uint64    valid after, seconds since the epoch
 *     uint64    valid before
 *     string    critical options, each two strings: name and data
 *     string    extensions, likewise
 *     string    reserved
 *     string    the authority's public key
 *     string    its signature over all of the above
 */
import { Buffer } from 'node:buffer'
import { certificateTypeOf } from '../ssh-wire/certificate-type.ts'
import { flawOfOptions } from './certificate-options.ts'
import type { Certificate, CertificateFlaw } from './certificate-parts.ts'
import { KEY_TYPES, type PublicKey, PublicKeyError, parsePublicKey, readKeyFields } from './public-key.ts'
import { Reader } from './reader.ts'
import { verifySignature } from './signature.ts'

export const MAX_CERTIFICATE_BYTES = 16_384
const MAX_PRINCIPALS = 256
const MAX_OPTIONS = 64
const USER = 1
const HOST = 2

const malformed = (message: string): PublicKeyError => new PublicKeyError(`the certificate ${message}`)

/** Types of certificates, and the types of the keys that they certify. */
const TYPES: ReadonlyMap<string, string> = new Map(KEY_TYPES.map((type) => [certificateTypeOf(type), type]))

export const isCertificateType = (type: string): boolean => TYPES.has(type)

/** A key, or a certificate for one, that a client offers. */
export interface OfferedKey {
  key: PublicKey
  certificate?: Certificate
}

/** Limits of the offered keys that are kept: their number, and the length of each. */
const MAX_KNOWN = 256
const MAX_KNOWN_BYTES = 4096
/** The keys offered most recently, by their blobs: a sign-in reads its key three times. */
const known = new Map<string, OfferedKey>()

/**
 * Returns the offered key or certificate, or undefined if it is malformed or of a type that is not accepted.
 */
export function readOfferedKey(blob: Uint8Array): OfferedKey | undefined {
  // Every byte is one character of the name.
  const name = Buffer.from(blob.buffer, blob.byteOffset, blob.length).toString('latin1')
  const found = known.get(name)
  if (found) {
    known.delete(name)
    known.set(name, found)
    return found
  }
  try {
    const offered = parseOfferedKey(blob)
    if (blob.length <= MAX_KNOWN_BYTES) keep(name, offered)
    return offered
  } catch (error) {
    if (error instanceof PublicKeyError) return undefined
    throw error
  }
}

function keep(name: string, offered: OfferedKey): void {
  const [oldest] = known.keys()
  if (oldest !== undefined && known.size >= MAX_KNOWN) known.delete(oldest)
  known.set(name, offered)
}

/** @throws PublicKeyError if it is neither a key nor a certificate of an accepted type */
export function parseOfferedKey(blob: Uint8Array): OfferedKey {
  const bytes = Buffer.from(blob)
  const type = new Reader(bytes, malformed).string().toString('latin1')
  if (!TYPES.has(type)) return { key: parsePublicKey(bytes) }
  const certificate = parseCertificate(bytes)
  return { key: certificate.key, certificate }
}

/** Parses a certificate without checking it. @throws PublicKeyError */
export function parseCertificate(blob: Uint8Array): Certificate {
  if (MAX_CERTIFICATE_BYTES < blob.length) {
    throw malformed(`has ${blob.length} bytes: expected at most ${MAX_CERTIFICATE_BYTES}`)
  }
  const bytes = Buffer.from(blob)
  const reader = new Reader(bytes, malformed)
  const type = TYPES.get(reader.string().toString('latin1'))
  if (type === undefined) throw malformed('is of a type that is not accepted')
  reader.string()
  const begin = reader.at
  const fields = readKeyFields(type, reader)
  const key: PublicKey = { type, blob: plainBlob(type, bytes.subarray(begin, reader.at)), ...fields }
  const serial = reader.uint64()
  const kind = reader.uint32()
  const keyId = reader.string()
  const principals = new Reader(reader.string(), malformed).strings(MAX_PRINCIPALS)
  const validAfter = reader.uint64()
  const validBefore = reader.uint64()
  const criticalOptions = readOptions(reader.string())
  const extensions = readOptions(reader.string())
  reader.string()
  // Must be a plain key: a certificate cannot certify.
  const authority = parsePublicKey(reader.string())
  const signed = bytes.subarray(0, reader.at)
  const signature = reader.string()
  reader.end()
  return {
    key,
    serial,
    isOfUser: kind === USER,
    isOfHost: kind === HOST,
    keyId,
    principals: principals.map((name) => name.toString('utf8')),
    validAfter,
    validBefore,
    criticalOptions,
    extensions,
    authority,
    signed,
    signature,
  }
}

function plainBlob(type: string, fields: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt32BE(type.length)
  return Buffer.concat([head, Buffer.from(type, 'latin1'), fields])
}

function readOptions(bytes: Buffer): Map<string, Buffer> {
  const options = new Map<string, Buffer>()
  const parts = new Reader(bytes, malformed).strings(2 * MAX_OPTIONS)
  if (parts.length % 2 !== 0) throw malformed('has an option without data')
  for (let at = 0; at < parts.length; at += 2) {
    const name = parts[at]!.toString('latin1')
    if (options.has(name)) throw malformed('has an option twice')
    options.set(name, parts[at + 1]!)
  }
  return options
}

export interface CertificateUse {
  authorities: readonly PublicKey[]
  /** The user's name as stored; a principal must equal it, byte for byte. */
  user: string
  /** The client's address. */
  source: string
  /** Milliseconds since the epoch. */
  now: number
}

/**
 * Returns why the certificate is refused for this user, or undefined if it is accepted; its key still has to
 * sign. Never throws.
 */
export function flawOfCertificate(
  certificate: Certificate,
  use: CertificateUse,
): CertificateFlaw | undefined {
  const { authority, principals } = certificate
  if (!use.authorities.some(({ blob }) => blob.equals(authority.blob))) return 'certificate_authority'
  if (!isSigned(certificate)) return 'certificate_signature'
  if (!certificate.isOfUser) return 'certificate_type'
  // One without principals would be valid for every user.
  if (!principals.includes(use.user)) return 'certificate_principal'
  if (!isValidAt(certificate, use.now)) return 'certificate_validity'
  return flawOfOptions(certificate, use.source)
}

/** Returns the time from which the certificate is invalid, in milliseconds since the epoch. */
export function endOf({ validBefore }: Certificate): number {
  return Number(validBefore) * 1000
}

/** `now` in milliseconds since the epoch. */
export function isValidAt({ validAfter, validBefore }: Certificate, now: number): boolean {
  const seconds = BigInt(Math.floor(now / 1000))
  return validAfter <= seconds && seconds < validBefore
}

/** Whether the named authority has signed it, not with SHA-1. Never throws. */
export function isSigned({ authority, signed, signature }: Certificate): boolean {
  try {
    return verifySignature(authority, signed, signature) !== undefined
  } catch (error) {
    if (error instanceof PublicKeyError) return false
    throw error
  }
}

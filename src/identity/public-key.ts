/** Accepted public keys of users (RFC 4252 7). Keys are compared byte by byte. */
import { Buffer } from 'node:buffer'
import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { Reader } from './reader.ts'

/** A line of authorized_keys; RSA of 16 384 bits has some 2 800 characters. */
export const MAX_LINE = 8192
export const MIN_RSA_BITS = 2048
export const MAX_RSA_BITS = 16_384
/** The application of a FIDO key: `ssh:` and what its owner added. */
const MAX_APPLICATION = 1024
const ED25519_BYTES = 32

/** Types of plain keys; for ECDSA the curve by its names in SSH and in JSON Web Keys. */
const CURVES: Readonly<Record<string, { name: string; jwk: string; bytes: number }>> = {
  'ecdsa-sha2-nistp256': { name: 'nistp256', jwk: 'P-256', bytes: 32 },
  'ecdsa-sha2-nistp384': { name: 'nistp384', jwk: 'P-384', bytes: 48 },
  'ecdsa-sha2-nistp521': { name: 'nistp521', jwk: 'P-521', bytes: 66 },
  'sk-ecdsa-sha2-nistp256@openssh.com': { name: 'nistp256', jwk: 'P-256', bytes: 32 },
}
const SK_ED25519 = 'sk-ssh-ed25519@openssh.com'
export const KEY_TYPES: readonly string[] = ['ssh-ed25519', 'ssh-rsa', ...Object.keys(CURVES), SK_ED25519]

export interface PublicKey {
  type: string
  /** Encoded as in RFC 4253 6.6. */
  blob: Buffer
  key: KeyObject
  /** Application that a FIDO key signs for (PROTOCOL.u2f). */
  application?: Buffer
}

/** The key or certificate cannot be used for signing in; the message is for administrators. */
export class PublicKeyError extends Error {
  override readonly name = 'PublicKeyError'
}

const malformed = (message: string): PublicKeyError => new PublicKeyError(`the public key ${message}`)

/**
 * Reads a line `TYPE BASE64 [COMMENT]` of OpenSSH's authorized_keys, without options.
 * @throws PublicKeyError
 */
export function parseAuthorizedKey(line: string): PublicKey & { comment: string } {
  if (MAX_LINE < line.length)
    throw new PublicKeyError(`a public key must not be longer than ${MAX_LINE} characters`)
  const [, type, base64, comment = ''] =
    /^([!-~]+)[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t]+([^\r\n]*))?$/.exec(line.trim()) ?? []
  if (type === undefined || base64 === undefined) {
    throw new PublicKeyError(
      'expected one line TYPE BASE64 COMMENT, as in a .pub file, without options before it',
    )
  }
  const key = parsePublicKey(Buffer.from(base64, 'base64'))
  if (key.type !== type)
    throw new PublicKeyError(`the line says ${type}, the key itself is of type ${key.type}`)
  return { ...key, comment: comment.trim() }
}

/**
 * Parses a key's blob (RFC 4253 6.6).
 * @throws PublicKeyError if it is malformed, of a type that is not accepted, or RSA of too few or too many
 * bits
 */
export function parsePublicKey(blob: Uint8Array): PublicKey {
  const bytes = Buffer.from(blob)
  const reader = new Reader(bytes, malformed)
  const type = reader.string().toString('latin1')
  if (!KEY_TYPES.includes(type)) {
    throw new PublicKeyError(`keys of this type are not accepted: expected one of ${KEY_TYPES.join(', ')}`)
  }
  const fields = readKeyFields(type, reader)
  reader.end()
  return { type, blob: bytes, ...fields }
}

/** Parses the fields after a plain key's type, in a blob or in a certificate. */
export function readKeyFields(type: string, reader: Reader): { key: KeyObject; application?: Buffer } {
  const jwk = readJwk(type, reader)
  const application = type.startsWith('sk-') ? Buffer.from(reader.string()) : undefined
  if (application && MAX_APPLICATION < application.length) throw malformed('has too long an application')
  try {
    return { key: createPublicKey({ key: jwk, format: 'jwk' }), ...(application && { application }) }
  } catch {
    throw malformed('is malformed')
  }
}

function readJwk(type: string, reader: Reader): JsonWebKey {
  if (type === 'ssh-rsa') return readRsa(reader)
  const curve = CURVES[type]
  if (curve) return readPoint(curve, reader)
  const point = reader.string()
  if (point.length !== ED25519_BYTES) throw malformed(`is malformed: expected ${ED25519_BYTES} bytes`)
  return { kty: 'OKP', crv: 'Ed25519', x: point.toString('base64url') }
}

/** `string curve`, `string Q` uncompressed (RFC 5656 3.1). */
function readPoint({ name, jwk, bytes }: (typeof CURVES)[string], reader: Reader): JsonWebKey {
  const curve = reader.string()
  const point = reader.string()
  if (!curve.equals(Buffer.from(name)) || point.length !== 1 + 2 * bytes || point[0] !== 4) {
    throw malformed('is malformed')
  }
  return {
    kty: 'EC',
    crv: jwk,
    x: point.subarray(1, 1 + bytes).toString('base64url'),
    y: point.subarray(1 + bytes).toString('base64url'),
  }
}

/** `mpint e`, `mpint n` (RFC 4253 6.6). */
function readRsa(reader: Reader): JsonWebKey {
  const exponent = reader.string()
  const modulus = reader.string()
  const flaw = flawOfRsa(exponent, modulus, { min: MIN_RSA_BITS, max: MAX_RSA_BITS })
  if (flaw !== undefined) throw new PublicKeyError(flaw)
  return {
    kty: 'RSA',
    e: unsigned(exponent)!.toString('base64url'),
    n: unsigned(modulus)!.toString('base64url'),
  }
}

/**
 * Returns why a public RSA key (`mpint e`, `mpint n`) is unusable, or undefined if it is usable. `bits`
 * bounds the modulus.
 */
export function flawOfRsa(e: Buffer, n: Buffer, bits: { min: number; max: number }): string | undefined {
  const exponent = unsigned(e)
  const modulus = unsigned(n)
  if (!exponent || !modulus) return 'the public key is malformed'
  const length = bitsOf(modulus)
  if (length < bits.min || bits.max < length)
    return `the RSA key has ${length} bits: expected ${bits.min} to ${bits.max}`
  // A long exponent makes a verification as expensive as a signature.
  if (64 < bitsOf(exponent)) return 'the exponent of the RSA key has more than 64 bits'
  // With 1 the signature equals the signed value, so that anyone can make it.
  if (bitsOf(exponent) < 2) return 'the exponent of the RSA key is 1'
  return undefined
}

/** Returns a positive mpint (RFC 4251 5) without leading zeros, or undefined if it is negative or zero. */
export function unsigned(mpint: Buffer): Buffer | undefined {
  if (mpint.length === 0 || (mpint[0]! & 0x80) !== 0) return undefined
  const first = mpint.findIndex((byte) => byte !== 0)
  return first === -1 ? undefined : mpint.subarray(first)
}

function bitsOf(number: Buffer): number {
  return number.length * 8 - Math.clz32(number[0]!) + 24
}

/** Formats as OpenSSH does: `SHA256:` and base64 without padding. */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`
}

/** Whether one of the user's lines has exactly this key; unreadable lines match nothing. */
export function isKeyOf(lines: readonly string[], blob: Uint8Array): boolean {
  return lines.some((line) => {
    const base64 = line.trim().split(/[ \t]+/)[1]
    return base64 !== undefined && Buffer.from(base64, 'base64').equals(blob)
  })
}

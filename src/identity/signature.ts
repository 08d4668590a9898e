/** Signatures of SSH keys, FIDO keys among them, and the data that a sign-in's signature has to cover. */
import { Buffer } from 'node:buffer'
import { createHash, verify } from 'node:crypto'
import { type PublicKey, PublicKeyError, unsigned } from './public-key.ts'
import { Reader } from './reader.ts'

/** A request of RFC 4252 7: session id, user name, algorithm, key or certificate. */
const MAX_SIGNED_BYTES = 65_536
const MAX_SIGNATURE_BYTES = 4096

const USERAUTH_REQUEST = 50

/** Signature algorithm → its type of key and its parameters. No SHA-1: `ssh-rsa` is a type of key only. */
const ALGORITHMS: ReadonlyMap<string, { keyType: string; hash: string | null; coordinate?: number }> =
  new Map([
    ['ssh-ed25519', { keyType: 'ssh-ed25519', hash: null }],
    ['ecdsa-sha2-nistp256', { keyType: 'ecdsa-sha2-nistp256', hash: 'sha256', coordinate: 32 }],
    ['ecdsa-sha2-nistp384', { keyType: 'ecdsa-sha2-nistp384', hash: 'sha384', coordinate: 48 }],
    ['ecdsa-sha2-nistp521', { keyType: 'ecdsa-sha2-nistp521', hash: 'sha512', coordinate: 66 }],
    ['rsa-sha2-256', { keyType: 'ssh-rsa', hash: 'sha256' }],
    ['rsa-sha2-512', { keyType: 'ssh-rsa', hash: 'sha512' }],
    ['sk-ssh-ed25519@openssh.com', { keyType: 'sk-ssh-ed25519@openssh.com', hash: null }],
    [
      'sk-ecdsa-sha2-nistp256@openssh.com',
      { keyType: 'sk-ecdsa-sha2-nistp256@openssh.com', hash: 'sha256', coordinate: 32 },
    ],
  ])

/** Flags of a FIDO token's response (CTAP 2, authenticator data). */
const USER_PRESENT = 0x01
const USER_VERIFIED = 0x04

export interface Signature {
  algorithm: string
  /** Whether the token has checked a PIN or a finger; false for a key that is not in a token. */
  userVerified: boolean
}

export interface SignedRequest {
  /** The user-name field as the client sent it, whole. */
  login: string
  /** Blob of the key or certificate, as offered. */
  offered: Uint8Array
  /** The key that has to have signed: the offered one, or the one in the certificate. */
  key: PublicKey
  data: Uint8Array
  /** The signature field: `string` algorithm, `string` signature, and for FIDO keys `byte` flags, `uint32` counter. */
  signature: Uint8Array
}

/**
 * Returns the signature if it is the key's, over a request to sign in with this very login and blob, by the
 * algorithm that the signed bytes name; otherwise undefined. Never throws.
 */
export function verifySignedRequest(signed: SignedRequest): Signature | undefined {
  if (MAX_SIGNED_BYTES < signed.data.length) return undefined
  const data = Buffer.from(signed.data)
  try {
    const request = readRequest(data)
    if (!request?.key.equals(signed.offered)) return undefined
    if (!request.login.equals(Buffer.from(signed.login, 'utf8'))) return undefined
    // A certificate goes with a certificate's algorithm, a plain key with its own.
    const isPlain = signed.key.blob.equals(signed.offered)
    if (CERTIFICATE_SUFFIX.test(request.algorithm) === isPlain) return undefined
    const signature = verifySignature(signed.key, data, signed.signature)
    return signature?.algorithm === plainAlgorithm(request.algorithm) ? signature : undefined
  } catch (error) {
    if (error instanceof PublicKeyError) return undefined
    throw error
  }
}

const CERTIFICATE_SUFFIX = /-cert-v01(@openssh\.com)$/

/**
 * Returns the algorithm by which a certificate's key signs: PROTOCOL.certkeys names it after the
 * certificate's.
 */
function plainAlgorithm(name: string): string {
  if (!CERTIFICATE_SUFFIX.test(name)) return name
  return name.replace(CERTIFICATE_SUFFIX, name.startsWith('sk-') ? '$1' : '')
}

/**
 * Returns the signature if it is the key's over these bytes, or undefined. A FIDO key counts only if its user
 * was present.
 * @throws PublicKeyError if the field is malformed
 */
export function verifySignature(key: PublicKey, data: Uint8Array, field: Uint8Array): Signature | undefined {
  if (MAX_SIGNATURE_BYTES < field.length) return undefined
  const reader = new Reader(Buffer.from(field), (message) => new PublicKeyError(`the signature ${message}`))
  const name = reader.string().toString('latin1')
  const algorithm = ALGORITHMS.get(name)
  const bytes = reader.string()
  if (algorithm?.keyType !== key.type) return undefined
  let signedBytes = data
  let flags = 0
  if (key.application) {
    // PROTOCOL.u2f: the data that a token signs.
    flags = reader.byte()
    const counter = reader.uint32()
    if ((flags & USER_PRESENT) === 0) return undefined
    const suffix = Buffer.alloc(5)
    suffix[0] = flags
    suffix.writeUInt32BE(counter, 1)
    signedBytes = Buffer.concat([sha256(key.application), suffix, sha256(data)])
  }
  reader.end()
  const { hash, coordinate } = algorithm
  const plain = coordinate === undefined ? bytes : pointOf(bytes, coordinate)
  const isGood =
    plain !== undefined && verify(hash, signedBytes, { key: key.key, dsaEncoding: 'ieee-p1363' }, plain)
  return isGood ? { algorithm: name, userVerified: (flags & USER_VERIFIED) !== 0 } : undefined
}

const sha256 = (bytes: Uint8Array): Buffer => createHash('sha256').update(bytes).digest()

/** Reads `mpint r`, `mpint s` (RFC 5656 3.1.2) as two numbers of this many bytes. */
function pointOf(bytes: Buffer, size: number): Buffer | undefined {
  const reader = new Reader(bytes, (message) => new PublicKeyError(`the signature ${message}`))
  const numbers = [unsigned(reader.string()), unsigned(reader.string())]
  reader.end()
  const point = Buffer.alloc(2 * size)
  for (const [index, number] of numbers.entries()) {
    if (!number || size < number.length) return undefined
    number.copy(point, (index + 1) * size - number.length)
  }
  return point
}

/**
 * Parses the data that a client signs (RFC 4252 7):
 *
 *     string    session identifier
 *     byte      SSH_MSG_USERAUTH_REQUEST
 *     string    user name
 *     string    service name
 *     string    "publickey"
 *     boolean   TRUE
 *     string    public key algorithm name
 *     string    public key to be used for authentication
 */
function readRequest(data: Buffer): { login: Buffer; algorithm: string; key: Buffer } | undefined {
  const reader = new Reader(data, (message) => new PublicKeyError(`the signed request ${message}`))
  const session = reader.string()
  const message = reader.byte()
  const login = reader.string()
  const service = reader.string().toString('latin1')
  const method = reader.string().toString('latin1')
  const signed = reader.byte()
  const algorithm = reader.string().toString('latin1')
  const key = reader.string()
  reader.end()
  if (session.length === 0 || message !== USERAUTH_REQUEST) return undefined
  if (service !== 'ssh-connection' || method !== 'publickey' || signed !== 1) return undefined
  return { login, algorithm, key }
}

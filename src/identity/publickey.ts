/**
 * Public keys of users (RFC 4252 7): which are accepted, and what a signature has to cover. Keys are compared
 * byte by byte.
 */
import { Buffer } from 'node:buffer'
import { createHash, createPublicKey, type KeyObject, verify } from 'node:crypto'
import ssh2 from 'ssh2'

/** A line of authorized_keys; RSA of 16 384 bits has some 2 800 characters. */
export const MAX_LINE = 8192
export const MIN_RSA_BITS = 2048
export const MAX_RSA_BITS = 16_384
/** What is signed is a request of RFC 4252 7: session id, user name, algorithm, key. */
const MAX_SIGNED_BYTES = 16_384
const MAX_SIGNATURE_BYTES = 4096

const USERAUTH_REQUEST = 50

/** Signature algorithm → the type of its keys and the hash. No SHA-1: `ssh-rsa` is a type of keys only. */
const ALGORITHMS: ReadonlyMap<string, { keyType: string; hash: string | null }> = new Map([
  ['ssh-ed25519', { keyType: 'ssh-ed25519', hash: null }],
  ['ecdsa-sha2-nistp256', { keyType: 'ecdsa-sha2-nistp256', hash: 'sha256' }],
  ['ecdsa-sha2-nistp384', { keyType: 'ecdsa-sha2-nistp384', hash: 'sha384' }],
  ['ecdsa-sha2-nistp521', { keyType: 'ecdsa-sha2-nistp521', hash: 'sha512' }],
  ['rsa-sha2-256', { keyType: 'ssh-rsa', hash: 'sha256' }],
  ['rsa-sha2-512', { keyType: 'ssh-rsa', hash: 'sha512' }],
])
const KEY_TYPES: readonly string[] = [
  ...new Set([...ALGORITHMS.values()].map((algorithm) => algorithm.keyType)),
]

export interface PublicKey {
  type: string
  /** RFC 4253 6.6. */
  blob: Buffer
  key: KeyObject
}

/** The key cannot be used for signing in; the message is for whoever manages it. */
export class PublicKeyError extends Error {
  override readonly name = 'PublicKeyError'
}

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
 * Reads a key's blob (RFC 4253 6.6).
 * @throws PublicKeyError when it is malformed, of a type that is not accepted, or RSA of too few or too many bits
 */
export function parsePublicKey(blob: Uint8Array): PublicKey {
  const bytes = Buffer.from(blob)
  const reader = new Reader(bytes)
  const type = reader.string()?.toString('latin1')
  if (type === undefined) throw new PublicKeyError('the public key is cut short')
  if (!KEY_TYPES.includes(type)) {
    throw new PublicKeyError(`keys of this type are not accepted: expected one of ${KEY_TYPES.join(', ')}`)
  }
  if (type === 'ssh-rsa') checkRsa(reader)
  const parsed = ssh2.utils.parseKey(`${type} ${bytes.toString('base64')}`)
  if (parsed instanceof Error || parsed.type !== type) throw new PublicKeyError('the public key is malformed')
  try {
    return { type, blob: bytes, key: createPublicKey(parsed.getPublicPEM()) }
  } catch {
    throw new PublicKeyError('the public key is malformed')
  }
}

/** OpenSSH's form: `SHA256:` and base64 without padding. */
export function fingerprintOf(blob: Uint8Array): string {
  return `SHA256:${createHash('sha256').update(blob).digest('base64').replaceAll('=', '')}`
}

/** Whether one of the user's lines is this very key; lines that cannot be read match nothing. */
export function isKeyOf(lines: readonly string[], blob: Uint8Array): boolean {
  return lines.some((line) => {
    const base64 = line.trim().split(/[ \t]+/)[1]
    return base64 !== undefined && Buffer.from(base64, 'base64').equals(blob)
  })
}

export interface SignedRequest {
  /** The user-name field that the client sent, whole. */
  login: string
  /** The key's blob as offered. */
  key: Uint8Array
  data: Uint8Array
  /** Without its algorithm's name; of ECDSA in DER, as the SSH library hands it on. */
  signature: Uint8Array
}

/**
 * Whether the signature is the key's own over a request to sign in with this very login and key. The
 * algorithm is the one that the signed bytes name. Never throws.
 */
export function verifySignedRequest({ login, key, data, signature }: SignedRequest): boolean {
  if (MAX_SIGNED_BYTES < data.length || MAX_SIGNATURE_BYTES < signature.length) return false
  const request = readRequest(Buffer.from(data))
  const algorithm = request && ALGORITHMS.get(request.algorithm)
  if (!algorithm || !request.key.equals(key) || !request.login.equals(Buffer.from(login, 'utf8')))
    return false
  try {
    const parsed = parsePublicKey(key)
    return parsed.type === algorithm.keyType && verify(algorithm.hash, data, parsed.key, signature)
  } catch {
    return false
  }
}

/**
 * What a client signs (RFC 4252 7):
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
  const reader = new Reader(data)
  const session = reader.string()
  const message = reader.byte()
  const login = reader.string()
  const service = reader.string()?.toString('latin1')
  const method = reader.string()?.toString('latin1')
  const signed = reader.byte()
  const algorithm = reader.string()?.toString('latin1')
  const key = reader.string()
  if (!session || session.length === 0 || message !== USERAUTH_REQUEST || !login) return undefined
  if (service !== 'ssh-connection' || method !== 'publickey' || signed !== 1) return undefined
  return algorithm !== undefined && key && reader.atEnd ? { login, algorithm, key } : undefined
}

/** `mpint e`, `mpint n` (RFC 4253 6.6). */
function checkRsa(reader: Reader): void {
  const exponent = reader.string()
  const modulus = reader.string()
  if (!exponent || !modulus || !reader.atEnd) throw new PublicKeyError('the RSA key is cut short')
  const bits = bitsOf(modulus)
  if (bits < MIN_RSA_BITS || MAX_RSA_BITS < bits) {
    throw new PublicKeyError(`the RSA key has ${bits} bits: expected ${MIN_RSA_BITS} to ${MAX_RSA_BITS}`)
  }
  // a long exponent makes a verification as dear as a signature
  if (64 < bitsOf(exponent)) throw new PublicKeyError('the exponent of the RSA key has more than 64 bits')
}

function bitsOf(mpint: Buffer): number {
  const first = mpint.findIndex((byte) => byte !== 0)
  return first === -1 ? 0 : (mpint.length - first) * 8 - Math.clz32(mpint[first]!) + 24
}

/** Reads SSH's data types (RFC 4251 5); undefined when the bytes end early. */
class Reader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  byte(): number | undefined {
    return this.#at < this.#bytes.length ? this.#bytes[this.#at++] : undefined
  }

  string(): Buffer | undefined {
    if (this.#bytes.length < this.#at + 4) return undefined
    const begin = this.#at + 4
    const end = begin + this.#bytes.readUInt32BE(this.#at)
    if (this.#bytes.length < end) return undefined
    this.#at = end
    return this.#bytes.subarray(begin, end)
  }
}

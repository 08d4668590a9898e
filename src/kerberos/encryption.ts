/**
 * Encryption types of Kerberos: AES with SHA-1 (RFC 3962) and with SHA-2 (RFC 8009). Older ones (DES, 3DES, RC4) are
 * not spoken: they can be broken, or open to offline guessing (RFC 8429).
 */
import { Buffer } from 'node:buffer'
import { createHmac, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { BLOCK, cbc, decryptCts, encryptCts } from './cts.ts'
import { nfold } from './nfold.ts'

const derive = promisify(pbkdf2)
/** Most rounds that a KDC may ask for; more would hold our processor. */
const MAX_ROUNDS = 1_000_000

export interface EncryptionType {
  /** Number of the encryption type (RFC 3961 section 8). */
  readonly number: number
  readonly name: string
  readonly keyBytes: number
  /** Number of its checksum. */
  readonly checksumType: number
  /** Makes the key of a password. `parameters` come from the KDC; empty: the usual rounds. @throws MalformedError */
  keyOf(password: Uint8Array, salt: string, parameters: Uint8Array): Promise<Buffer>
  /** `confounder`: for test vectors only. */
  encrypt(key: Uint8Array, usage: number, plain: Uint8Array, confounder?: Uint8Array): Buffer
  /** @throws IntegrityError if it was altered, or belongs to another key or usage */
  decrypt(key: Uint8Array, usage: number, sealed: Uint8Array): Buffer
  checksum(key: Uint8Array, usage: number, data: Uint8Array): Buffer
}

/** Encrypted bytes that are not of this key: altered, of another key, or too short. The causes are not told apart. */
export class IntegrityError extends Error {
  override name = 'IntegrityError'
  constructor() {
    super('Kerberos: encrypted bytes of another key')
  }
}

const SEAL = 0xaa
const PROTECT = 0x55
const CHECK = 0x99

function usageBytes(usage: number, role: number): Buffer {
  const bytes = Buffer.alloc(5)
  bytes.writeUInt32BE(usage)
  bytes[4] = role
  return bytes
}

/** Returns DK(key, constant) of RFC 3961 section 5.1. */
export function deriveSha1(key: Uint8Array, constant: Uint8Array): Buffer {
  let block = nfold(constant, BLOCK)
  const blocks: Buffer[] = []
  for (let at = 0; at < key.length; at += BLOCK) {
    block = cbc(key, block)
    blocks.push(block)
  }
  return Buffer.concat(blocks).subarray(0, key.length)
}

/** Returns KDF-HMAC-SHA2(key, label, size) of RFC 8009 section 3; `size` in bytes. */
export function deriveSha2(hash: string, key: Uint8Array, label: Uint8Array, size: number): Buffer {
  const bits = Buffer.alloc(4)
  bits.writeUInt32BE(size * 8)
  const input = Buffer.concat([Buffer.from([0, 0, 0, 1]), label, Buffer.from([0]), bits])
  return createHmac(hash, key).update(input).digest().subarray(0, size)
}

function roundsOf(parameters: Uint8Array, usual: number): number {
  if (parameters.length === 0) return usual
  const rounds = parameters.length === 4 ? Buffer.from(parameters).readUInt32BE() : 0
  if (rounds < 1 || MAX_ROUNDS < rounds)
    throw new MalformedError(`Kerberos: 1 to ${MAX_ROUNDS} rounds were expected, got ${rounds}`)
  return rounds
}

function equal(found: Uint8Array, made: Uint8Array): boolean {
  return found.length === made.length && timingSafeEqual(found, made)
}

const KERBEROS = Buffer.from('kerberos')

function withSha1(number: number, checksumType: number, keyBytes: number): EncryptionType {
  const macBytes = 12
  const mac = (key: Uint8Array, usage: number, role: number, data: Uint8Array) =>
    createHmac('sha1', deriveSha1(key, usageBytes(usage, role)))
      .update(data)
      .digest()
      .subarray(0, macBytes)
  return {
    number,
    name: `aes${keyBytes * 8}-cts-hmac-sha1-96`,
    keyBytes,
    checksumType,
    keyOf: async (password, salt, parameters) =>
      deriveSha1(await derive(password, salt, roundsOf(parameters, 4096), keyBytes, 'sha1'), KERBEROS),
    encrypt: (key, usage, plain, confounder = randomBytes(BLOCK)) => {
      const whole = Buffer.concat([confounder, plain])
      return Buffer.concat([
        encryptCts(deriveSha1(key, usageBytes(usage, SEAL)), whole),
        mac(key, usage, PROTECT, whole),
      ])
    },
    decrypt: (key, usage, sealed) => {
      const end = sealed.length - macBytes
      if (end < BLOCK) throw new IntegrityError()
      const whole = decryptCts(deriveSha1(key, usageBytes(usage, SEAL)), sealed.subarray(0, end))
      if (!equal(sealed.subarray(end), mac(key, usage, PROTECT, whole))) throw new IntegrityError()
      return whole.subarray(BLOCK)
    },
    checksum: (key, usage, data) => mac(key, usage, CHECK, data),
  }
}

function withSha2(number: number, hash: string, keyBytes: number, macBytes: number): EncryptionType {
  const name = `aes${keyBytes * 8}-cts-hmac-${hash}-${macBytes * 8}`
  const mac = (key: Uint8Array, usage: number, role: number, data: Uint8Array) =>
    createHmac(hash, deriveSha2(hash, key, usageBytes(usage, role), macBytes))
      .update(data)
      .digest()
      .subarray(0, macBytes)
  const sealKey = (key: Uint8Array, usage: number) => deriveSha2(hash, key, usageBytes(usage, SEAL), keyBytes)
  const vector = Buffer.alloc(BLOCK)
  return {
    number,
    name,
    keyBytes,
    checksumType: number,
    keyOf: async (password, salt, parameters) => {
      const salted = Buffer.from(`${name}\0${salt}`)
      const key = await derive(password, salted, roundsOf(parameters, 32_768), keyBytes, hash)
      return deriveSha2(hash, key, KERBEROS, keyBytes)
    },
    encrypt: (key, usage, plain, confounder = randomBytes(BLOCK)) => {
      const sealed = encryptCts(sealKey(key, usage), Buffer.concat([confounder, plain]))
      return Buffer.concat([sealed, mac(key, usage, PROTECT, Buffer.concat([vector, sealed]))])
    },
    decrypt: (key, usage, sealed) => {
      const end = sealed.length - macBytes
      if (end < BLOCK) throw new IntegrityError()
      const body = sealed.subarray(0, end)
      if (!equal(sealed.subarray(end), mac(key, usage, PROTECT, Buffer.concat([vector, body]))))
        throw new IntegrityError()
      return decryptCts(sealKey(key, usage), body).subarray(BLOCK)
    },
    checksum: (key, usage, data) => mac(key, usage, CHECK, data),
  }
}

/** In the order in which they are offered. */
export const ENCRYPTION_TYPES: readonly EncryptionType[] = [
  withSha2(20, 'sha384', 32, 24),
  withSha2(19, 'sha256', 16, 16),
  withSha1(18, 16, 32),
  withSha1(17, 15, 16),
]

/** Returns the encryption type of a number, or undefined if it is not spoken. */
export function encryptionType(number: number): EncryptionType | undefined {
  return ENCRYPTION_TYPES.find((one) => one.number === number)
}

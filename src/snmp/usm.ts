/**
 * The User-based Security Model (RFC 3414) with SHA-2 (RFC 7860) and AES (RFC 3826): keys, digests, encryption.
 * SHA-1, MD5 and DES are not here.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto'
import { Secret } from '../model/secret.ts'

/** Digest's bytes in a message, by authentication protocol (RFC 7860 4.2). */
const DIGESTS = { sha224: 16, sha256: 24, sha384: 32, sha512: 48 } as const
const CIPHERS = {
  aes: { name: 'aes-128-cfb', keyLength: 16 },
  aes256: { name: 'aes-256-cfb', keyLength: 32 },
} as const

export type AgentAuth = keyof typeof DIGESTS
export type AgentPriv = keyof typeof CIPHERS

/** Bytes that a password is repeated to (RFC 3414 A.2). */
const EXPANDED = 1024 * 1024
export const SALT_LENGTH = 8

export interface UserPasswords {
  name: string
  auth: AgentAuth
  authPassword: Secret
  priv: AgentPriv
  privPassword: Secret
}

/** A user's keys, which are of use at one engine only. */
export interface UserKeys {
  name: Buffer
  digestLength: number
  sign(message: Uint8Array): Buffer
  encrypt(plain: Uint8Array, moment: Moment): Buffer
  decrypt(encrypted: Uint8Array, moment: Moment): Buffer
}

/** The parts of an initialization vector (RFC 3826 3.1.2.1). */
export interface Moment {
  boots: number
  time: number
  salt: Uint8Array
}

/** Derives the keys. Takes some milliseconds for each password. */
export function userKeys(user: UserPasswords, engineId: Uint8Array): UserKeys {
  const digestLength = DIGESTS[user.auth]
  const cipher = CIPHERS[user.priv]
  const authKey = localizedKey(user.auth, user.authPassword, engineId)
  const whole = localizedKey(user.auth, user.privPassword, engineId)
  const privKey = Secret.of(whole.reveal().subarray(0, cipher.keyLength))
  whole.wipe()
  return {
    name: Buffer.from(user.name),
    digestLength,
    sign: (message) =>
      createHmac(user.auth, authKey.reveal()).update(message).digest().subarray(0, digestLength),
    encrypt(plain, moment) {
      const transform = createCipheriv(cipher.name, privKey.reveal(), vectorOf(moment))
      return Buffer.concat([transform.update(plain), transform.final()])
    },
    decrypt(encrypted, moment) {
      const transform = createDecipheriv(cipher.name, privKey.reveal(), vectorOf(moment))
      return Buffer.concat([transform.update(encrypted), transform.final()])
    },
  }
}

/** Returns the key of RFC 3414 2.6. */
export function localizedKey(auth: AgentAuth, password: Secret, engineId: Uint8Array): Secret {
  const expanded = Buffer.alloc(EXPANDED, password.reveal())
  const key = createHash(auth).update(expanded).digest()
  expanded.fill(0)
  const localized = createHash(auth).update(key).update(engineId).update(key).digest()
  key.fill(0)
  const secret = Secret.of(localized)
  localized.fill(0)
  return secret
}

/**
 * Whether the digest is the user's over the message with zeros in the digest's place. `digest` is a view of
 * `message`.
 */
export function isSignedBy(user: UserKeys, message: Uint8Array, digest: Uint8Array): boolean {
  if (digest.length !== user.digestLength) return false
  const blank = Buffer.from(message)
  blank.fill(
    0,
    digest.byteOffset - message.byteOffset,
    digest.byteOffset - message.byteOffset + digest.length,
  )
  return timingSafeEqual(user.sign(blank), digest)
}

function vectorOf({ boots, time, salt }: Moment): Buffer {
  const vector = Buffer.alloc(16)
  vector.writeUInt32BE(boots, 0)
  vector.writeUInt32BE(time, 4)
  vector.set(salt, 8)
  return vector
}

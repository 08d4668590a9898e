/**
 * Encrypts a session's key for age recipients by Node's own crypto: the library goes through WebCrypto, and computes
 * the rest in JavaScript, which takes three times as long. The whole file is one chunk, since the key is short.
 *
 *     age-encryption.org/v1
 *     -> X25519 SHARE
 *     BODY                   for each recipient: ChaCha20-Poly1305 of the file key, in base64 without padding
 *     --- MAC                HMAC-SHA-256 of the header up to here
 *     nonce (16 bytes)
 *     chunk                  ChaCha20-Poly1305 of the content
 *
 * https://c2sp.org/age
 */
import { Buffer } from 'node:buffer'
import {
  createCipheriv,
  createHmac,
  createPublicKey,
  diffieHellman,
  generateKeyPairSync,
  hkdfSync,
  type KeyObject,
  randomBytes,
} from 'node:crypto'

const VERSION = 'age-encryption.org/v1'
const FILE_KEY_LENGTH = 16
const KEY_LENGTH = 32
const NONCE_LENGTH = 16
const TAG_LENGTH = 16
const NO_SALT = Buffer.alloc(0)
/** A wrapping key is used once. */
const ZERO_NONCE = Buffer.alloc(12)
/** Counter 0, and the mark of the last chunk. */
const ONLY_CHUNK = Buffer.from('000000000000000000000001', 'hex')
/** A longer content has more chunks. */
const MAX_CONTENT = 64 * 1024
/** A recipient of the type X25519: those of other types have longer names. */
const RECIPIENT = /^age1([02-9ac-hj-np-z]{52})[02-9ac-hj-np-z]{6}$/
/** The characters of Bech32 (BIP 173). */
const BECH32 = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l'
/** SubjectPublicKeyInfo of an X25519 key (RFC 8410 4), without the key. */
const SPKI = Buffer.from('302a300506032b656e032100', 'hex')

export interface Recipient {
  raw: Buffer
  key: KeyObject
}

/**
 * Returns a recipient (age1…) whose checksum was checked before, or undefined if it is of another type than
 * X25519.
 */
export function x25519Recipient(text: string): Recipient | undefined {
  const [, data] = RECIPIENT.exec(text) ?? []
  if (data === undefined) return undefined
  const raw = bytesOf(data)
  return { raw, key: createPublicKey({ key: Buffer.concat([SPKI, raw]), format: 'der', type: 'spki' }) }
}

export function encryptFor(recipients: readonly Recipient[], content: Uint8Array): Buffer {
  if (content.length > MAX_CONTENT) throw new Error(`expected at most ${MAX_CONTENT} bytes of content`)
  const fileKey = randomBytes(FILE_KEY_LENGTH)
  const stanzas = recipients.map((recipient) => stanzaFor(recipient, fileKey))
  const header = `${[VERSION, ...stanzas].join('\n')}\n---`
  const macKey = derived(fileKey, NO_SALT, 'header')
  const mac = createHmac('sha256', macKey).update(header).digest()
  const nonce = randomBytes(NONCE_LENGTH)
  const payloadKey = derived(fileKey, nonce, 'payload')
  const chunk = sealed(payloadKey, ONLY_CHUNK, content)
  for (const key of [fileKey, macKey, payloadKey]) key.fill(0)
  return Buffer.concat([Buffer.from(`${header} ${base64(mac)}\n`), nonce, chunk])
}

function stanzaFor({ raw, key }: Recipient, fileKey: Buffer): string {
  const { publicKey, privateKey } = generateKeyPairSync('x25519')
  const share = publicKey.export({ format: 'der', type: 'spki' }).subarray(SPKI.length)
  // Throws for a recipient of low order.
  const secret = diffieHellman({ privateKey, publicKey: key })
  const wrapping = derived(secret, Buffer.concat([share, raw]), `${VERSION}/X25519`)
  const body = sealed(wrapping, ZERO_NONCE, fileKey)
  for (const key of [secret, wrapping]) key.fill(0)
  return `-> X25519 ${base64(share)}\n${base64(body)}`
}

function derived(secret: Buffer, salt: Buffer, info: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, salt, info, KEY_LENGTH))
}

function sealed(key: Buffer, nonce: Buffer, content: Uint8Array): Buffer {
  const cipher = createCipheriv('chacha20-poly1305', key, nonce, { authTagLength: TAG_LENGTH })
  return Buffer.concat([cipher.update(content), cipher.final(), cipher.getAuthTag()])
}

function base64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

/** Returns the 32 bytes of 52 characters of five bits each, without the rest of the last one. */
function bytesOf(data: string): Buffer {
  const bytes = Buffer.alloc(KEY_LENGTH)
  let value = 0
  let bits = 0
  let at = 0
  for (const character of data) {
    value = ((value << 5) | BECH32.indexOf(character)) & 0xfff
    bits += 5
    if (bits < 8) continue
    bits -= 8
    bytes[at++] = value >> bits
  }
  return bytes
}

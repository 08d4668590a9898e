/** Keys of licensing and their use (MS-RDPELE 5.1.2 to 5.1.5). */
import { Buffer } from 'node:buffer'
import { constants, createHash, type KeyObject, publicEncrypt, timingSafeEqual } from 'node:crypto'
import { Rc4 } from '../ntlm/rc4.ts'
import { modulusLength, PADDING } from './certificate.ts'

export const SECRET_LENGTH = 48

const PAD_1 = Buffer.alloc(40, 0x36)
const PAD_2 = Buffer.alloc(48, 0x5c)

export interface Randoms {
  client: Uint8Array
  server: Uint8Array
}

function hash(algorithm: 'md5' | 'sha1', ...parts: Uint8Array[]): Buffer {
  const hash = createHash(algorithm)
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** SaltedHash over A, BB and CCC: 48 bytes. */
function salted(secret: Uint8Array, first: Uint8Array, second: Uint8Array): Buffer {
  const inputs = ['A', 'BB', 'CCC'].map((text) => Buffer.from(text, 'latin1'))
  return Buffer.concat(inputs.map((input) => hash('md5', secret, hash('sha1', input, secret, first, second))))
}

export class LicensingKeys {
  readonly #salt: Buffer
  readonly #key: Buffer

  constructor(salt: Uint8Array, key: Uint8Array) {
    this.#salt = Buffer.from(salt)
    this.#key = Buffer.from(key)
  }

  /** Derives the keys from a premaster secret of SECRET_LENGTH bytes. */
  static of(secret: Uint8Array, { client, server }: Randoms): LicensingKeys {
    const master = salted(secret, client, server)
    const blob = salted(master, server, client)
    return new LicensingKeys(blob.subarray(0, 16), hash('md5', blob.subarray(16, 32), client, server))
  }

  /** Encrypts or decrypts; each message starts a new key stream. */
  cipher(bytes: Uint8Array): Buffer {
    return new Rc4(this.#key).apply(bytes)
  }

  /** Returns the MAC of unencrypted data. */
  mac(data: Uint8Array): Buffer {
    const length = Buffer.alloc(4)
    length.writeUInt32LE(data.length)
    return hash('md5', this.#salt, PAD_2, hash('sha1', this.#salt, PAD_1, length, data))
  }

  /** Decrypts and checks the MAC. Returns undefined if the data was not sealed with these keys. */
  open(encrypted: Uint8Array, mac: Uint8Array): Buffer | undefined {
    const data = this.cipher(encrypted)
    return timingSafeEqual(this.mac(data), mac) ? data : undefined
  }
}

/** RSA without padding (5.1.2.1), least significant byte first. Throws if OpenSSL rejects the key. */
export function encryptSecret(secret: Uint8Array, key: KeyObject): Buffer {
  const plain = Buffer.alloc(modulusLength(key))
  plain.set(secret)
  const encrypted = publicEncrypt({ key, padding: constants.RSA_NO_PADDING }, plain.reverse())
  return Buffer.concat([encrypted.reverse(), Buffer.alloc(PADDING)])
}

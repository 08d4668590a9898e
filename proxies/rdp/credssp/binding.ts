/**
 * pubKeyAuth (MS-CSSP 3.1.5): each side proves, sealed, that it sees the same public key on the TLS
 * connection. This stops a man in the middle, even if no authority has signed the certificate.
 */
import { Buffer } from 'node:buffer'
import { createHash, timingSafeEqual } from 'node:crypto'

/** From this version on, hashes with a nonce (CVE-2018-0886). */
export const HASHED_VERSION = 5

const MAGIC = { client: 'Client-To-Server', server: 'Server-To-Client' } as const

export interface Binding {
  /** The lower of both versions. */
  version: number
  publicKey: Uint8Array
  /** The client's nonce; versions before 5 have none. */
  nonce: Uint8Array
}

/** Returns the bytes that `side` seals. */
export function bindingOf(side: 'client' | 'server', { version, publicKey, nonce }: Binding): Buffer {
  if (HASHED_VERSION <= version) {
    const hash = createHash('sha256').update(`CredSSP ${MAGIC[side]} Binding Hash\0`)
    return hash.update(nonce).update(publicKey).digest()
  }
  const key = Buffer.from(publicKey)
  // 3.1.5 step 4: the response is the key with one added to its first byte.
  if (side === 'server') key[0] = (key[0]! + 1) & 0xff
  return key
}

export function isBinding(side: 'client' | 'server', binding: Binding, found: Uint8Array): boolean {
  const expected = bindingOf(side, binding)
  return expected.length === found.length && timingSafeEqual(expected, found)
}

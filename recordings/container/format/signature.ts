/** Ed25519 keys in their raw form (RFC 8032), as the header carries them. */
import { Buffer } from 'node:buffer'
import { createPublicKey, type KeyObject } from 'node:crypto'

/** Returns a public key from its 32 bytes. */
export function publicKeyOf(raw: Uint8Array): KeyObject {
  return createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(raw).toString('base64url') },
    format: 'jwk',
  })
}

/** Returns the 32 bytes of an Ed25519 key; for a private key, of its public half. */
export function rawPublicKey(key: KeyObject): Buffer {
  const jwk = (key.type === 'private' ? createPublicKey(key) : key).export({ format: 'jwk' })
  if (jwk.crv !== 'Ed25519' || jwk.x === undefined) throw new Error('expected an Ed25519 key')
  return Buffer.from(jwk.x, 'base64url')
}

/** Keys that targets show in protocols other than SSH, in the form in which they are pinned. */
import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { MAX_RSA_BITS } from '../identity/public-key.ts'

export type BareKind = 'x509' | 'rsa'

/** Certificates with many names have some KiB. */
const MAX_LENGTH = 64 * 1024
const MIN_RSA_BITS = 1024

/**
 * Returns the SubjectPublicKeyInfo (RFC 5280 4.1), in DER, of a certificate or of a bare RSA key, so that a
 * certificate renewed for the same key still matches. Issuer, subject and dates do not matter, because the
 * key is pinned. Returns undefined if it is malformed or its RSA key is too short or too long.
 */
export function publicKeyIn(der: Uint8Array, kind: BareKind): Buffer | undefined {
  if (der.length > MAX_LENGTH) return undefined
  try {
    const key = kind === 'x509' ? new X509Certificate(der).publicKey : bareKey(der)
    const { modulusLength } = key.asymmetricKeyDetails ?? {}
    const isLongEnough =
      modulusLength === undefined || (modulusLength >= MIN_RSA_BITS && modulusLength <= MAX_RSA_BITS)
    if (!isLongEnough || (kind === 'rsa' && key.asymmetricKeyType !== 'rsa')) return undefined
    return key.export({ type: 'spki', format: 'der' })
  } catch {
    return undefined
  }
}

function bareKey(der: Uint8Array): KeyObject {
  return createPublicKey({ key: Buffer.from(der), format: 'der', type: 'spki' })
}

/** The keys that targets show by other protocols than SSH, in the form in which they are pinned. */
import { createPublicKey, type KeyObject, X509Certificate } from 'node:crypto'
import { MAX_RSA_BITS } from '../identity/public-key.ts'

export type BareKind = 'x509' | 'rsa'

/** Certificates with many names are some KiB. */
const MAX_LENGTH = 64 * 1024
const MIN_RSA_BITS = 1024

/**
 * The SubjectPublicKeyInfo (RFC 5280 4.1), in DER, of a certificate or of a bare RSA key: a certificate that is renewed
 * for the same key is the same target's. Who issued it, for whom and until when is not asked: it is pinned. undefined:
 * it is none, or its RSA key is one of a length that could be anybody's.
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

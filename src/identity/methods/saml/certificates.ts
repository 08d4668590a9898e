/** Certificates of identity providers: their keys count, and whether they are strong; no authority is asked about them. */
import { X509Certificate } from 'node:crypto'

export const MAX_CERTIFICATES = 8
const MIN_BITS = 2048
const MAX_BITS = 8192
const PEM = /-----BEGIN CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----/g

/** Returns the certificates of a text in PEM. @throws Error that says what is wrong with one */
export function certificatesOf(pem: string): string[] {
  const all = pem.match(PEM) ?? []
  if (all.length === 0 || pem.replaceAll(PEM, '').trim() !== '')
    throw new Error('expected certificates in PEM')
  return sound(all)
}

/** Returns the certificate of base64, as metadata have it, in PEM. @throws Error that says what is wrong with it */
export function certificateOf(base64: string): string {
  const lines = base64.replaceAll(/\s+/g, '').match(/.{1,64}/g) ?? []
  return sound([`-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`])[0]!
}

function sound(all: readonly string[]): string[] {
  if (MAX_CERTIFICATES < all.length)
    throw new Error(`expected at most ${MAX_CERTIFICATES} certificates, got ${all.length}`)
  return all.map((pem) => {
    const certificate = new X509Certificate(pem)
    const { asymmetricKeyType: type, asymmetricKeyDetails } = certificate.publicKey
    const bits = asymmetricKeyDetails?.modulusLength ?? 0
    if (type !== 'rsa' || bits < MIN_BITS || MAX_BITS < bits)
      throw new Error(
        `expected a key of RSA with ${MIN_BITS} to ${MAX_BITS} bits, got ${type} ${bits || ''}`.trim(),
      )
    return certificate.toString()
  })
}

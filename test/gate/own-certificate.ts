/** Self-signed TLS certificates for targets. */
import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { generate } from 'selfsigned'

/** Returns a certificate in DER, for a new key or the given one (PKCS#8 and SPKI in PEM). */
export async function certificate(keyPair?: { privateKey: string; publicKey: string }): Promise<Uint8Array> {
  const made = await generate([{ name: 'commonName', value: 'srv1' }], {
    keyType: 'rsa',
    algorithm: 'sha256',
    ...(keyPair && { keyPair }),
  })
  return new X509Certificate(made.cert).raw
}

export const rsa = (modulusLength: number) =>
  generateKeyPairSync('rsa', {
    modulusLength,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  })

export const spki = (pem: string) => createPublicKey(pem).export({ type: 'spki', format: 'der' })

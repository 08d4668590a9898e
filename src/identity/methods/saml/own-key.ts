/** Makes and checks the key pair by which this service provider signs, and to which assertions are encrypted. */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { certificatesOf } from './certificates.ts'

const BITS = 3072
const DAYS = 3650

export interface OwnKey {
  /** PEM. */
  key: string
  certificate: string
}

/** `now` in milliseconds since the epoch. */
export async function newOwnKey(name: string, now: number): Promise<OwnKey> {
  // Loaded on demand, as at the first start.
  const { generate } = await import('selfsigned')
  const made = await generate([{ name: 'commonName', value: name.slice(0, 64) }], {
    keyType: 'rsa',
    keySize: BITS,
    algorithm: 'sha256',
    notBeforeDate: new Date(now),
    notAfterDate: new Date(now + DAYS * 86_400_000),
    extensions: [{ name: 'basicConstraints', cA: false, critical: true }],
  })
  return { key: made.private, certificate: made.cert }
}

/** Says what is wrong with a pair. */
export function ownKeyFlaw({ key, certificate }: OwnKey): string | undefined {
  try {
    const [pem, another] = certificatesOf(certificate)
    if (another !== undefined) return 'expected one certificate'
    return new X509Certificate(pem!).checkPrivateKey(createPrivateKey(key))
      ? undefined
      : 'the certificate is not that of the key'
  } catch (error) {
    return (error as Error).message
  }
}

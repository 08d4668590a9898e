/** A certificate for VNC's X509 types, as PEM files: for 127.0.0.1, self-signed. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { generate } from 'selfsigned'

export interface CertificateFiles {
  cert: string
  key: string
  pem: { cert: string; key: string }
  remove(): void
}

export async function certificateFiles(): Promise<CertificateFiles> {
  const made = await generate([{ name: 'commonName', value: 'localhost' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    extensions: [
      { name: 'basicConstraints', cA: true, critical: true },
      { name: 'keyUsage', digitalSignature: true, keyCertSign: true, critical: true },
      {
        name: 'subjectAltName',
        altNames: [
          { type: 2, value: 'localhost' },
          { type: 7, ip: '127.0.0.1' },
        ],
      },
    ],
  })
  const folder = mkdtempSync(join(tmpdir(), 'sallyport-certificate-'))
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  writeFileSync(cert, made.cert)
  writeFileSync(key, made.private, { mode: 0o600 })
  return {
    cert,
    key,
    pem: { cert: made.cert, key: made.private },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

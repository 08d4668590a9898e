/**
 * Files of the listeners' keys in the data folder, and new keys. A private key that lies there replaces the one
 * in the database; the public halves are written for administrators and clients.
 */
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import { dirname, join } from 'node:path'
import { writeNew } from './data-folder.ts'
import { newSshKey, publicLine, type SshKeyType } from './ssh-keys.ts'

export interface TlsFiles {
  cert: string
  key: string
}

const CERTIFICATE_DAYS = 825
const VNC_KEY_BITS = 2048

/** Ed25519 first; ECDSA and RSA (which signs with SHA-2 only) for clients without it. */
export const HOST_KEYS: readonly { name: string; type: SshKeyType }[] = [
  { name: 'ssh_host_ed25519_key', type: 'ed25519' },
  { name: 'ssh_host_ecdsa_key', type: 'ecdsa' },
  { name: 'ssh_host_rsa_key', type: 'rsa' },
]

const inSsh = (dataDir: string, name: string) => join(dataDir, 'ssh', name)
const inTls = (dataDir: string, name: string) => join(dataDir, 'tls', name)

/** A key's file, and its content if there is one. */
export interface KeyFile {
  file: string
  content: string | undefined
}

/** Returns the file of a host key (OpenSSH's private form). */
export function hostKeyFile(dataDir: string, name: string): KeyFile {
  return keyFile(inSsh(dataDir, name))
}

/** Writes the public line of a host key, unless the file is about that key already. Returns the line. */
export function writePublicHostKey(dataDir: string, name: string, privateKey: string): string {
  const file = inSsh(dataDir, `${name}.pub`)
  const line = publicLine(privateKey)
  const known = existsSync(file) ? readFileSync(file, 'utf8').trim() : ''
  // A comment behind the key is the administrator's.
  if (known === line || known.startsWith(`${line} `)) return known
  writePublic(file, `${line}\n`)
  return line
}

/** Returns the public lines of the host keys. */
export function publicHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => inSsh(dataDir, `${name}.pub`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8').trim())
}

/** Returns the host keys that are to replace those in use: files with the suffix `.next`, private form. */
export function nextHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => inSsh(dataDir, `${name}.next`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'))
}

/** Returns the file of the RSA key (PKCS#8, PEM) by which VNC viewers identify the bastion in RA2. */
export function vncKeyFile(dataDir: string): KeyFile {
  return keyFile(inTls(dataDir, 'vnc_rsa_key.pem'))
}

export function newVncKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: VNC_KEY_BITS })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
}

export function newHostKey(type: SshKeyType): string {
  return newSshKey(type).private
}

/** Returns the certificate and key of the listeners with TLS, from their files if both are there. */
export function tlsFiles(dataDir: string): { file: string; content: TlsFiles | undefined } {
  const key = keyFile(inTls(dataDir, 'key.pem'))
  const cert = keyFile(inTls(dataDir, 'cert.pem'))
  const { content } = key
  const isWhole = content !== undefined && cert.content !== undefined
  return { file: key.file, content: isWhole ? { cert: cert.content!, key: content } : undefined }
}

/** Writes the certificate that the listeners show, for clients that are to trust it. */
export function writeCertificate(dataDir: string, cert: string): void {
  const { file, content } = keyFile(inTls(dataDir, 'cert.pem'))
  if (content !== cert) writePublic(file, cert)
}

/** Makes a certificate for the host, `localhost` and the loopback addresses, and its key. */
export async function selfSigned(hostname: string): Promise<TlsFiles> {
  // Loaded on demand: only the first start makes a certificate.
  const { generate } = await import('selfsigned')
  const now = new Date()
  const names = [...new Set([hostname, 'localhost'])]
  const made = await generate([{ name: 'commonName', value: hostname.slice(0, 64) }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: now,
    notAfterDate: new Date(now.getTime() + CERTIFICATE_DAYS * 86_400_000),
    extensions: [
      // not an authority: clients that trust it trust this host, and a thief of its key can vouch for no
      // other
      { name: 'basicConstraints', cA: false, critical: true },
      { name: 'keyUsage', digitalSignature: true, critical: true },
      { name: 'extKeyUsage', serverAuth: true },
      {
        name: 'subjectAltName',
        altNames: [
          ...names.map((name) =>
            isIP(name) ? { type: 7 as const, ip: name } : { type: 2 as const, value: name },
          ),
          { type: 7 as const, ip: '127.0.0.1' },
          { type: 7 as const, ip: '::1' },
        ],
      },
    ],
  })
  return { cert: made.cert, key: made.private }
}

function keyFile(file: string): KeyFile {
  return { file, content: existsSync(file) ? readFileSync(file, 'utf8') : undefined }
}

function writePublic(file: string, content: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
  writeNew(file, content, 0o644)
}

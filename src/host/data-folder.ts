/**
 * The broker's data folder: created at the first start with mode 0700, with the keys of its listeners.
 * Existing files are used unchanged. One broker at a time holds it.
 */
import { generateKeyPairSync } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { isIP } from 'node:net'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { newSshKey } from './ssh-keys.ts'

export interface TlsFiles {
  cert: string
  key: string
}

const CERTIFICATE_DAYS = 825
const VNC_KEY_BITS = 2048

/** In the data folder while a restore fills it: the contents must not be used yet. */
export const RESTORING = 'restoring'

/**
 * Creates the folder if it is missing. Throws if a restore was interrupted, if others could read the folder,
 * or if it is another user's: that user could put any file there, and the user's broker could not use files
 * that root creates there.
 */
export function openDataFolder(path: string): void {
  makeDataFolder(path)
  const { uid } = statSync(path)
  const own = process.geteuid?.() ?? uid
  if (uid !== own) {
    throw new Error(
      `the data folder ${path} belongs to user ${uid}, and this is user ${own}: run this as user ${uid}, or chown the folder and all that is in it`,
    )
  }
  if (existsSync(join(path, RESTORING))) {
    throw new Error(
      `the data folder ${path} is being restored, or a restore was interrupted: run sallyport restore again`,
    )
  }
}

/** Creates the folder if it is missing. Throws if others could read it. */
export function makeDataFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { mode } = statSync(path)
  if ((mode & 0o077) !== 0) {
    throw new Error(
      `the data folder ${path} is open to other users (mode ${(mode & 0o777).toString(8)}): chmod 700 ${path}`,
    )
  }
}

/** Another broker, or a command that must be alone, holds the data folder. */
export class FolderInUseError extends Error {
  override readonly name = 'FolderInUseError'
}

/**
 * Locks the folder against a second broker with a kernel lock that dies with the process (SQLite's exclusive
 * transaction on its own file; a pid could by now be another program's, or of another container), and writes
 * the pid file that SIGHUP needs. Returns a function that releases it. Throws FolderInUseError if another
 * process holds it.
 */
export function holdDataFolder(path: string): () => void {
  const pidFile = join(path, 'sallyport.pid')
  const lock = new DatabaseSync(join(path, 'sallyport.lock'))
  try {
    lock.exec('begin exclusive')
  } catch (error) {
    lock.close()
    if (!/locked/.test(String(error))) throw error
    const holder = runningHolder(pidFile)
    const who = holder === undefined ? 'another process' : `process ${holder}`
    throw new FolderInUseError(
      `the data folder ${path} is in use by ${who}: stop that broker first, or replace it by sallyport serve --takeover`,
    )
  }
  writeNew(pidFile, `${process.pid}\n`, 0o600)
  return () => {
    rmSync(pidFile, { force: true })
    lock.close()
  }
}

const KEYS_LOCK = 'sallyport.keys.lock'

/**
 * Marks that this process has the database's keys in memory; any number of processes may. Returns a function
 * that releases the mark. Throws while the keys are being replaced.
 */
export function shareKeys(path: string): () => void {
  const how = 'begin; select count(*) from sqlite_schema'
  return lock(path, KEYS_LOCK, how, 'its keys are being replaced: try again')
}

/** Locks the keys for their replacement: afterwards no process may write data sealed with the old ones. */
export function holdKeys(path: string): () => void {
  return lock(
    path,
    KEYS_LOCK,
    'begin exclusive',
    'a broker or a command uses its keys: stop the broker first',
  )
}

/** Locks the rotation of the master key: two at a time would each remove the other's new key. */
export function holdRotation(path: string): () => void {
  return lock(path, 'sallyport.rotation.lock', 'begin exclusive', 'its master key is being replaced already')
}

/** Takes a kernel lock that dies with the process, as in `holdDataFolder`. */
function lock(path: string, file: string, how: string, refusal: string): () => void {
  const lock = new DatabaseSync(join(path, file))
  try {
    lock.exec(how)
  } catch (error) {
    lock.close()
    throw /locked/.test(String(error)) ? new Error(`the data folder ${path} is in use: ${refusal}`) : error
  }
  return () => lock.close()
}

/**
 * Returns the pid in the file if that process runs; the number may have been reused by a program of another
 * name.
 */
export function runningHolder(file: string): number | undefined {
  try {
    const pid = Number(readFileSync(file, 'utf8').trim())
    if (!Number.isSafeInteger(pid) || pid < 1 || pid === process.pid) return undefined
    process.kill(pid, 0)
    const command = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : 'node'
    return command.includes('node') || command.includes('sallyport') ? pid : undefined
  } catch {
    return undefined
  }
}

/** Ed25519 first; ECDSA and RSA (which signs with SHA-2 only) for clients without it. */
const HOST_KEYS = [
  { name: 'ssh_host_ed25519_key', type: 'ed25519' },
  { name: 'ssh_host_ecdsa_key', type: 'ecdsa' },
  { name: 'ssh_host_rsa_key', type: 'rsa' },
] as const

/** Returns the front's SSH host keys (OpenSSH's private form), created if missing. */
export function hostKeys(dataDir: string): { private: string; public: string }[] {
  const folder = join(dataDir, 'ssh')
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  return HOST_KEYS.map(({ name, type }) => {
    const file = join(folder, name)
    if (!existsSync(file)) {
      const pair = newSshKey(type)
      writeNew(`${file}.pub`, `${pair.public}\n`, 0o644)
      writeNew(file, pair.private, 0o600)
    }
    return { private: readFileSync(file, 'utf8'), public: readFileSync(`${file}.pub`, 'utf8').trim() }
  })
}

/** Returns the public lines of the existing host keys. */
export function publicHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => join(dataDir, 'ssh', `${name}.pub`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8').trim())
}

/** Returns the host keys that are to replace those in use: files with the suffix `.next`, private form. */
export function nextHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => join(dataDir, 'ssh', `${name}.next`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'))
}

/** Returns the RSA key (PKCS#8, PEM) by which VNC viewers identify the bastion in RA2, created if missing. */
export function vncKey(dataDir: string): string {
  const file = join(dataDir, 'tls', 'vnc_rsa_key.pem')
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: VNC_KEY_BITS })
    writeNew(file, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, 0o600)
  }
  return readFileSync(file, 'utf8')
}

/**
 * Returns the certificate of the HTTPS listener: the configured one, or else a self-signed one in the data
 * folder.
 */
export async function tlsFiles(
  dataDir: string,
  hostname: string,
  configured: { certificate?: string; key?: string },
): Promise<TlsFiles> {
  if (configured.certificate !== undefined && configured.key !== undefined) {
    return { cert: readFileSync(configured.certificate, 'utf8'), key: readFileSync(configured.key, 'utf8') }
  }
  const cert = join(dataDir, 'tls', 'cert.pem')
  const key = join(dataDir, 'tls', 'key.pem')
  if (!existsSync(cert) || !existsSync(key)) {
    mkdirSync(dirname(cert), { recursive: true, mode: 0o700 })
    const made = await selfSigned(hostname)
    writeNew(key, made.key, 0o600)
    writeNew(cert, made.cert, 0o644)
  }
  return { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }
}

async function selfSigned(hostname: string): Promise<TlsFiles> {
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

/** Writes the file with its whole content or not at all, even if the process dies. */
function writeNew(file: string, content: string, mode: number): void {
  const draft = `${file}.new`
  rmSync(draft, { force: true })
  const handle = openSync(draft, 'wx', mode)
  try {
    writeSync(handle, content)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
  renameSync(draft, file)
}

/**
 * The broker's data folder: made at the first start, 0700, with the keys that its listeners show. What is there
 * is used as it is. One broker at a time holds it.
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
import { generate } from 'selfsigned'
import { newSshKey } from './ssh-keys.ts'

export interface TlsFiles {
  cert: string
  key: string
}

const CERTIFICATE_DAYS = 825
const VNC_KEY_BITS = 2048

/** In the data folder while a restore fills it: nobody may take what is there for the whole. */
export const RESTORING = 'restoring'

/**
 * Makes the folder where it is missing. Throws when a restore was interrupted, when others could read the folder, or when
 * it is another user's: that user could put anything there, and a file that root makes there is no file of that user's
 * broker.
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

/** Makes the folder where it is missing. Throws when others could read it. */
export function makeDataFolder(path: string): void {
  mkdirSync(path, { recursive: true, mode: 0o700 })
  const { mode } = statSync(path)
  if ((mode & 0o077) !== 0) {
    throw new Error(
      `the data folder ${path} is open to other users (mode ${(mode & 0o777).toString(8)}): chmod 700 ${path}`,
    )
  }
}

/**
 * Holds the folder against a second broker, by a lock of the kernel that dies with the process (SQLite's exclusive
 * transaction on a file of its own; a pid could be another program's by now, or of another container), and writes
 * the pid file that SIGHUP is sent by. Returns the function that lets go. Throws when another process holds it.
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
    throw new Error(`the data folder ${path} is in use by ${who}: stop that broker first`)
  }
  writeNew(pidFile, `${process.pid}\n`, 0o600)
  return () => {
    rmSync(pidFile, { force: true })
    lock.close()
  }
}

const KEYS_LOCK = 'sallyport.keys.lock'

/**
 * Says that this process has the keys of the folder's database in memory, as any number of processes may. Returns the
 * function that lets go. Throws while they are being replaced.
 */
export function shareKeys(path: string): () => void {
  const how = 'begin; select count(*) from sqlite_schema'
  return lock(path, KEYS_LOCK, how, 'its keys are being replaced: try again')
}

/** Holds the keys for their replacement: nobody may write what is sealed under the old ones afterwards. */
export function holdKeys(path: string): () => void {
  return lock(
    path,
    KEYS_LOCK,
    'begin exclusive',
    'a broker or a command uses its keys: stop the broker first',
  )
}

/** One replacement of the master key at a time: two would each remove what the other has just written. */
export function holdRotation(path: string): () => void {
  return lock(path, 'sallyport.rotation.lock', 'begin exclusive', 'its master key is being replaced already')
}

/** By a lock of the kernel that dies with the process, as in `holdDataFolder`. */
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

/** The pid in the file when that process runs; a process number may have been given to a program of another name. */
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

/** Ed25519 first; ECDSA and RSA (which signs with SHA-2 only) for clients that do not know it. */
const HOST_KEYS = [
  { name: 'ssh_host_ed25519_key', type: 'ed25519' },
  { name: 'ssh_host_ecdsa_key', type: 'ecdsa' },
  { name: 'ssh_host_rsa_key', type: 'rsa' },
] as const

/** The SSH host keys (OpenSSH's private form) of the front, made where they are missing. */
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

/** The lines of those that are there. */
export function publicHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => join(dataDir, 'ssh', `${name}.pub`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8').trim())
}

/** Host keys that are to take the place of those in use: files with `.next` behind their names, private form. */
export function nextHostKeys(dataDir: string): string[] {
  return HOST_KEYS.map(({ name }) => join(dataDir, 'ssh', `${name}.next`))
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'))
}

/** The RSA key (PKCS#8, PEM) that VNC viewers know the bastion by where they use RA2, made where it is missing. */
export function vncKey(dataDir: string): string {
  const file = join(dataDir, 'tls', 'vnc_rsa_key.pem')
  if (!existsSync(file)) {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: VNC_KEY_BITS })
    writeNew(file, privateKey.export({ type: 'pkcs8', format: 'pem' }) as string, 0o600)
  }
  return readFileSync(file, 'utf8')
}

/** The certificate of the HTTPS listener: the configured one, else a self-signed one of the data folder. */
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
  const now = new Date()
  const names = [...new Set([hostname, 'localhost'])]
  const made = await generate([{ name: 'commonName', value: hostname.slice(0, 64) }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: now,
    notAfterDate: new Date(now.getTime() + CERTIFICATE_DAYS * 86_400_000),
    extensions: [
      // no authority: a client that trusts it trusts this host, and whoever steals its key can vouch for no other
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

/** The file appears with its whole content or not at all, also when the process dies in between. */
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

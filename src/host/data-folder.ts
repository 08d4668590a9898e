/** The broker's data folder: created at the first start with mode 0700. One broker at a time holds it. */
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
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/** In the data folder while a restore fills it: the contents must not be used yet. */
export const RESTORING = 'restoring'

/** The id of a server's database that the folder belongs to: in the folder, and in the settings of the database. */
export const DATABASE_ID = 'database.id'

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

/** Writes the file with its whole content or not at all, even if the process dies. */
export function writeNew(file: string, content: string, mode: number): void {
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

/**
 * Where the master key is kept: a file of its own (created 0600 at the first start) or an environment variable.
 *
 * Changing a key that is in a file takes three steps: FILE.new is written, the database is rewrapped, FILE.new
 * becomes FILE. After a crash between the last two, FILE.new is the key that fits, and the next load ends the
 * change.
 */
import { open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import {
  fits,
  formatMasterKey,
  isSealed,
  MasterKeyError,
  newMasterKey,
  parseMasterKey,
  rotate,
} from './master-key.ts'

/** `file` is an absolute path, `env` the name of a variable. */
export type MasterKeySource = { file: string } | { env: string }

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The master key of this database. A missing file is created only while the database is not sealed yet.
 * @throws MasterKeyError when there is none, or what is there is no master key
 */
export async function loadMasterKey(
  source: MasterKeySource,
  settings: SettingRepository,
  environment: Environment = process.env,
): Promise<Secret> {
  if ('env' in source) return keyOfVariable(source.env, environment)
  const { file } = source
  const key = await readKey(file)
  if (key && (!(await isSealed(settings)) || (await fits(settings, key)))) return key
  const next = await readKey(nextOf(file))
  if (next && (await fits(settings, next))) {
    await rename(nextOf(file), file)
    await syncFolder(file)
    return next
  }
  // one that does not fit is refused, with both fingerprints, where it is used
  if (key) return key
  if (await isSealed(settings)) {
    throw new MasterKeyError(
      `the master key ${file} is missing: put back the one that this database was sealed with`,
    )
  }
  const fresh = newMasterKey()
  await writeKey(file, fresh)
  return fresh
}

/**
 * The master key that is kept there, whatever database it belongs to.
 * @throws MasterKeyError when there is none, or what is there is no master key
 */
export async function readMasterKey(
  source: MasterKeySource,
  environment: Environment = process.env,
): Promise<Secret> {
  if ('env' in source) return keyOfVariable(source.env, environment)
  const key = await readKey(source.file)
  if (key) return key
  throw new MasterKeyError(`the master key ${source.file} is missing`)
}

/**
 * Makes a new master key, has `rewrap` seal the database with it in one transaction, and replaces the file.
 * @throws MasterKeyError when the file's key is not the one of this database
 */
export async function rotateMasterKeyFile(
  file: string,
  settings: SettingRepository,
  rewrap: (old: Secret, fresh: Secret) => Promise<void> = (old, fresh) => rotate(settings, old, fresh),
): Promise<void> {
  const old = await loadMasterKey({ file }, settings)
  const fresh = newMasterKey()
  await rm(nextOf(file), { force: true })
  await writeKey(nextOf(file), fresh)
  await rewrap(old, fresh)
  await rename(nextOf(file), file)
  await syncFolder(file)
  old.wipe()
  fresh.wipe()
}

const nextOf = (file: string) => `${file}.new`

function keyOfVariable(name: string, environment: Environment): Secret {
  const text = environment[name]
  if (text !== undefined) return parseMasterKey(text, `the environment variable ${name}`)
  throw new MasterKeyError(`the environment variable ${name} is not set: it has to hold the master key`)
}

async function readKey(file: string): Promise<Secret | undefined> {
  try {
    return parseMasterKey(await readFile(file, 'utf8'), file)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  }
}

/** On the disk before it returns: a database that is sealed with a key that was lost is lost too. */
async function writeKey(file: string, key: Secret): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  const text = formatMasterKey(key)
  try {
    await handle.writeFile(text.reveal())
    await handle.sync()
  } finally {
    text.wipe()
    await handle.close()
  }
  await syncFolder(file)
}

async function syncFolder(file: string): Promise<void> {
  const folder = await open(dirname(file), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

/**
 * Storage of the master key: a file of its own (created 0600 at the first start) or an environment variable.
 *
 * Replacing a key in a file takes three steps: write FILE.new, rewrap the database, rename FILE.new to FILE.
 * After a crash between the last two, FILE.new is the key that fits, and the next load completes the
 * replacement.
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
  requireFit,
  rotate,
} from './master-key.ts'

/** `file` is an absolute path, `env` the name of a variable. */
export type MasterKeySource = { file: string } | { env: string }

type Environment = Readonly<Record<string, string | undefined>>

/**
 * Loads the master key of this database. Creates a missing file only if the database is not sealed yet.
 * @throws MasterKeyError if there is none, or its content is no master key
 */
export async function loadMasterKey(
  source: MasterKeySource,
  settings: Pick<SettingRepository, 'get'>,
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
  // A key that does not fit is refused, with both fingerprints, where it is used.
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
 * Makes sure that the master key opens a database that is sealed.
 * @throws MasterKeyError if it is missing, or another one
 */
export async function requireFitting(
  settings: Pick<SettingRepository, 'get'>,
  source: MasterKeySource,
): Promise<void> {
  if (!(await isSealed(settings))) return
  const master = await loadMasterKey(source, settings)
  try {
    await requireFit(settings, master)
  } finally {
    master.wipe()
  }
}

/**
 * Reads the master key, whatever database it belongs to.
 * @throws MasterKeyError if there is none, or its content is no master key
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
 * Makes a new master key, lets `rewrap` seal the database with it in one transaction, and replaces the file.
 * @throws MasterKeyError if the file's key is not the one of this database
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

/** Syncs the file before it returns: losing the key would lose the database sealed with it. */
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

/**
 * The master key: 32 bytes, kept outside the database, that wrap the data key inside it. A separate key for
 * each purpose is derived from it by HKDF-SHA-256 (RFC 5869), so that its fingerprint reveals nothing of the
 * wrapping key.
 */
import { Buffer } from 'node:buffer'
import { hkdfSync, randomBytes } from 'node:crypto'
import { Secret } from '../model/secret.ts'
import type { SettingRepository } from '../store/store.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal, UnsealError } from './seal.ts'

const HEADER = 'SALLYPORT-MASTER-KEY-1:'
const FINGERPRINT_BYTES = 8
/** Setting that holds the wrapped data key. */
export const WRAPPED_KEY = 'vault.data_key'

const PLACE = { table: 'settings', id: WRAPPED_KEY, field: 'key' }

/** The master key is missing, malformed, or not the one that sealed the database. */
export class MasterKeyError extends Error {
  override readonly name = 'MasterKeyError'
}

export function newMasterKey(): Secret {
  return wiping(randomBytes(KEY_BYTES), Secret.of)
}

/** Formats the key for a file or an environment variable: a recognisable header, then base64. */
export function formatMasterKey(key: Secret): Secret {
  return Secret.of(`${HEADER}${key.reveal().toString('base64')}\n`)
}

/**
 * Parses the output of `formatMasterKey`, ignoring white space around it.
 * @throws MasterKeyError naming `source`, never the content
 */
export function parseMasterKey(text: string, source: string): Secret {
  const trimmed = text.trim()
  const base64 = trimmed.slice(HEADER.length)
  if (!trimmed.startsWith(HEADER) || !/^[A-Za-z0-9+/]{43}=$/.test(base64)) {
    throw new MasterKeyError(
      `${source} holds no master key: expected ${HEADER} and 44 characters of base64, as the first start wrote it`,
    )
  }
  return wiping(Buffer.from(base64, 'base64'), Secret.of)
}

/** Identifies a master key without revealing it: 16 hexadecimal digits. */
export function fingerprint(master: Secret): string {
  return Buffer.from(derive(master, 'fingerprint', '', FINGERPRINT_BYTES)).toString('hex')
}

type Readable = Pick<SettingRepository, 'get'>

/** Whether the database has a data key, and so needs the master key that wraps it. */
export async function isSealed(settings: Readable): Promise<boolean> {
  return (await settings.get(WRAPPED_KEY)) !== undefined
}

/** Whether this master key wraps the database's data key. */
export async function fits(settings: Readable, master: Secret): Promise<boolean> {
  const stored = await settings.get(WRAPPED_KEY)
  return stored !== undefined && readWrapped(stored).master === fingerprint(master)
}

/** @throws MasterKeyError if the database was sealed with another master key */
export async function requireFit(settings: Readable, master: Secret): Promise<void> {
  const stored = await settings.get(WRAPPED_KEY)
  if (stored) unwrap(stored, master).key.wipe()
}

/**
 * Opens the data key; makes it at the first call on an empty database.
 * @throws MasterKeyError if the database was sealed with another master key
 */
export async function openDataKey(settings: SettingRepository, master: Secret): Promise<DataKey> {
  const stored = await settings.get(WRAPPED_KEY)
  if (stored) return unwrap(stored, master)
  const fresh = { id: randomBytes(KEY_ID_BYTES), key: newMasterKey() }
  // Another process may have been first: the key in the database counts.
  return unwrap(await settings.setOnce(WRAPPED_KEY, wrap(fresh, master)), master)
}

/**
 * Wraps the data key with another master key. This is one write to the database: after a crash the data key
 * is wrapped with either the old or the new one, and sealed values stay as they are.
 * @throws MasterKeyError if `old` is not, or no longer, the key of this database
 */
export async function rotate(settings: SettingRepository, old: Secret, fresh: Secret): Promise<void> {
  const stored = await settings.get(WRAPPED_KEY)
  if (!stored) throw new MasterKeyError('the database has no data key yet: start the broker once before')
  const key = unwrap(stored, old)
  const isStill = await settings.replace(WRAPPED_KEY, stored, wrap(key, fresh))
  key.key.wipe()
  if (!isStill)
    throw new MasterKeyError('the data key was replaced meanwhile, by somebody else: nothing was changed')
}

/**
 * Replaces the data key by another one, wrapped with the master key `fresh`, and returns the old one. The
 * caller reseals its values in the same transaction.
 * @throws MasterKeyError if `old` is not the key of this database
 */
export async function replaceDataKey(
  settings: SettingRepository,
  old: Secret,
  next: DataKey,
  fresh: Secret,
): Promise<DataKey> {
  const stored = await settings.get(WRAPPED_KEY)
  if (!stored) throw new MasterKeyError('the database has no data key yet: start the broker once before')
  const before = unwrap(stored, old)
  await settings.set(WRAPPED_KEY, wrap(next, fresh))
  return before
}

interface Wrapped {
  /** Fingerprint of the master key. */
  master: string
  /** Id of the data key, hexadecimal. */
  id: string
  /** Salt for HKDF, base64. */
  salt: string
  /** The data key, sealed under the derived key: base64. */
  sealed: string
}

function wrap(key: DataKey, master: Secret): Uint8Array {
  const salt = randomBytes(16).toString('base64')
  const wrapping = { id: key.id, key: Secret.of(derive(master, 'wrap data key', salt, KEY_BYTES)) }
  const sealed = Buffer.from(seal(wrapping, PLACE, key.key)).toString('base64')
  wrapping.key.wipe()
  const wrapped: Wrapped = {
    master: fingerprint(master),
    id: Buffer.from(key.id).toString('hex'),
    salt,
    sealed,
  }
  return Buffer.from(JSON.stringify(wrapped))
}

function unwrap(stored: Uint8Array, master: Secret): DataKey {
  const wrapped = readWrapped(stored)
  const own = fingerprint(master)
  if (wrapped.master !== own) {
    throw new MasterKeyError(
      `the master key does not fit this database: it was sealed with the key of fingerprint ${wrapped.master}, ` +
        `given was ${own}; give the key that belongs to it`,
    )
  }
  const id = Buffer.from(wrapped.id, 'hex')
  const wrapping = { id, key: Secret.of(derive(master, 'wrap data key', wrapped.salt, KEY_BYTES)) }
  try {
    return { id, key: open(wrapping, PLACE, Buffer.from(wrapped.sealed, 'base64')) }
  } catch (error) {
    if (error instanceof UnsealError) throw damaged()
    throw error
  } finally {
    wrapping.key.wipe()
  }
}

function readWrapped(stored: Uint8Array): Wrapped {
  try {
    const { master, id, salt, sealed } = JSON.parse(Buffer.from(stored).toString('utf8')) as Partial<Wrapped>
    if (master !== undefined && id !== undefined && salt !== undefined && sealed !== undefined) {
      return { master, id, salt, sealed }
    }
  } catch {
    // Malformed JSON counts as damaged, like a missing field.
  }
  throw damaged()
}

function damaged(): MasterKeyError {
  return new MasterKeyError(
    'the wrapped data key in the database is damaged: restore the database from a backup',
  )
}

function derive(master: Secret, purpose: string, salt: string, bytes: number): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', master.reveal(), salt, `sallyport ${purpose}`, bytes))
}

function wiping<T>(bytes: Buffer, use: (bytes: Buffer) => T): T {
  try {
    return use(bytes)
  } finally {
    bytes.fill(0)
  }
}

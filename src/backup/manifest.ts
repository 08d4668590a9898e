/**
 * The proof that a backup is complete: `manifest.json`, written last, with size and SHA-256 of every file,
 * and `manifest.sig` beside it, made with the key that signs the audit log. The list of recordings is a
 * separate file (list.ts), which the manifest names like the others, so that it stays small.
 */
import { createHash, type KeyObject, sign, verify } from 'node:crypto'
import Type, { type Static } from 'typebox'
import Value from 'typebox/value'
import { publicKeyOf } from '../../recordings/container/format/signature.ts'
import { BackupError, type Copied } from './files.ts'

export const MANIFEST = 'manifest.json'
export const SIGNATURE = 'manifest.sig'
export const DATABASE = 'sallyport.db'
export const RECORDING_LIST = 'recordings.jsonl'
export const RECORDINGS = 'recordings'
export const MASTER_KEY = 'master.key'
/** Files of the data folder, by their places in it; sealed (sealed.ts). */
export const DATA = 'data'
export const SEALED = '.age'

/** Version of this layout; another one belongs to another program. */
const FORMAT_VERSION = 1
export const MAX_MANIFEST = 1024 * 1024
export const MAX_SIGNATURE = 256
/** Limit of files of the data folder. */
export const MAX_FILES = 1000
const PREFIX = Buffer.from('sallyport-backup\x01', 'latin1')

const closed = { additionalProperties: false }
const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
export const Hash = Type.String({ pattern: '^[0-9a-f]{64}$' })
const Measured = { size: Count, sha256: Hash }

const Manifest = Type.Object(
  {
    format: Type.Literal('sallyport-backup'),
    version: Type.Literal(FORMAT_VERSION),
    program: Type.String({ maxLength: 100 }),
    /** Schema version of the database. */
    schema: Count,
    created: Type.String({ pattern: '^\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z$' }),
    hostname: Type.String({ maxLength: 255 }),
    /** The last row of the audit log. */
    audit: Type.Object({ row: Count, hash: Hash }, closed),
    sessions: Type.Object({ all: Count, running: Count }, closed),
    /** `containers`: the backup contains the recordings themselves, not only their keys. */
    recordings: Type.Object({ all: Count, containers: Type.Boolean(), bytes: Count }, closed),
    master_key: Type.Object(
      { fingerprint: Type.String({ pattern: '^[0-9a-f]{16}$' }), included: Type.Boolean() },
      closed,
    ),
    files: Type.Array(
      Type.Object({ path: Type.String({ minLength: 1, maxLength: 1024 }), ...Measured }, closed),
      {
        maxItems: MAX_FILES + 3,
      },
    ),
  },
  closed,
)
export type Manifest = Static<typeof Manifest>

export const newManifest = (content: Omit<Manifest, 'format' | 'version'>): Manifest => ({
  format: 'sallyport-backup',
  version: FORMAT_VERSION,
  ...content,
})

export const encodeManifest = (manifest: Manifest): Buffer =>
  Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`)

/** @throws BackupError if it is malformed, from another program, or names files that no backup has */
export function parseManifest(bytes: Buffer, path: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    throw new BackupError(`${path} is no JSON: it was changed or cut`)
  }
  const { format, version } = (value ?? {}) as { format?: unknown; version?: unknown }
  if (format !== 'sallyport-backup') throw new BackupError(`${path} is not of a backup of sallyport`)
  if (version !== FORMAT_VERSION) {
    throw new BackupError(
      `the backup has version ${JSON.stringify(version)}, this program knows ${FORMAT_VERSION}: take the program that made it`,
    )
  }
  if (!Value.Check(Manifest, value)) {
    const [fault] = Value.Errors(Manifest, value)
    throw new BackupError(
      `${path} is malformed: ${[fault?.instancePath, fault?.message].filter(Boolean).join(' ')}`,
    )
  }
  requirePlaces(value, path)
  return value
}

/** Checks that each file occurs once, and has a place that backups have. */
function requirePlaces({ files, master_key: masterKey }: Manifest, path: string): void {
  const seen = new Set<string>()
  for (const { path: name } of files) {
    if (seen.has(name)) throw new BackupError(`${path} names ${JSON.stringify(name)} twice`)
    seen.add(name)
    const isKnown = name === DATABASE || name === RECORDING_LIST || name === MASTER_KEY
    if (!isKnown && dataPlace(name) === undefined) {
      throw new BackupError(`${path} names ${JSON.stringify(name)}, which is no place in a backup`)
    }
  }
  for (const name of [DATABASE, RECORDING_LIST]) {
    if (!seen.has(name)) throw new BackupError(`${path} does not name ${name}`)
  }
  if (seen.has(MASTER_KEY) !== masterKey.included) {
    throw new BackupError(`${path} contradicts itself about the master key`)
  }
}

/** Returns the place in the data folder of a file below `data/`, or undefined if it is no such file. */
export function dataPlace(name: string): string | undefined {
  if (!name.endsWith(SEALED)) return undefined
  const [first, ...segments] = name.slice(0, -SEALED.length).split('/')
  const isSound =
    first === DATA &&
    segments.length > 0 &&
    segments.length <= 8 &&
    segments.every((segment) => /^[^\p{Cc}\\]{1,255}$/u.test(segment) && segment !== '.' && segment !== '..')
  return isSound ? segments.join('/') : undefined
}

/** Returns the entry of a file that every backup has. */
export function entryOf({ files }: Manifest, name: string): Copied {
  return files.find(({ path }) => path === name)!
}

const statementOf = (manifest: Uint8Array): Buffer =>
  Buffer.concat([PREFIX, createHash('sha256').update(manifest).digest()])

/** Returns the content of `manifest.sig`. */
export function signManifest(manifest: Uint8Array, key: KeyObject): string {
  return `${sign(null, statementOf(manifest), key).toString('base64')}\n`
}

/** Returns whether the raw Ed25519 key signed it. */
export function isSigned(manifest: Uint8Array, signature: Uint8Array, signer: Uint8Array): boolean {
  const bytes = Buffer.from(Buffer.from(signature).toString('latin1').trim(), 'base64')
  return bytes.length === 64 && verify(null, statementOf(manifest), publicKeyOf(signer), bytes)
}

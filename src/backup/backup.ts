/**
 * Makes a backup, beside a running broker or without one: the database as of one moment, host keys,
 * certificates, the state of the recordings and, on request, the recordings and the master key. The backup is
 * complete when its manifest exists, which is written last.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import { syncDirectory, syncFile } from '../../recordings/container/session-file.ts'
import type { Head } from '../audit/chain.ts'
import type { Audit } from '../audit/events/catalogue.ts'
import type { EventFields } from '../audit/events/fields.ts'
import type { Config } from '../config/config.ts'
import type { RecordingService } from '../recording-service/service.ts'
import { copyInto } from '../store/copy/snapshot.ts'
import { requireSound } from '../store/engine/snapshot.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { readMasterKey } from '../vault/key-file.ts'
import { fingerprint, fits, formatMasterKey } from '../vault/master-key.ts'
import { BackupError, type Copied, makeFolders, measure, writeNewFile } from './files.ts'
import {
  DATA,
  DATABASE,
  encodeManifest,
  MANIFEST,
  MASTER_KEY,
  type Manifest,
  newManifest,
  RECORDING_LIST,
  SEALED,
  SIGNATURE,
  signManifest,
} from './manifest.ts'
import { RecordingBackup } from './recordings.ts'
import { sealFile } from './sealed.ts'

export interface BackupOptions {
  config: Config
  recordingService: RecordingService
  audit: Pick<Audit, 'record'> & {
    checkpoint(options: { always: boolean }): Promise<void>
    /** The row of the last checkpoint. */
    readonly signed: Head | undefined
  }
  /** Folder of the backup: a new or an empty one. */
  folder: string
  withMasterKey: boolean
  withRecordings: boolean
  /** User that makes the backup. */
  user: string
  /** Version of the program. */
  version: string
  /** Aborts the backup: its files are removed. */
  signal: AbortSignal
  /** Milliseconds since the epoch. */
  now: () => number
}

/** Makes the backup. On failure it removes the backup's files and throws. */
export async function makeBackup(options: BackupOptions): Promise<Manifest> {
  const { audit, now } = options
  const begin = now()
  const folder = resolve(options.folder)
  const isNew = await openFolder(folder, options.config)
  const told: EventFields = { user: options.user, object: folder, method: partsOf(options).join(' ') }
  try {
    await audit.record('backup.begin', told)
    const { manifest, written } = await fill({ ...options, folder })
    const size = manifest.files.reduce((sum, file) => sum + file.size, manifest.recordings.bytes)
    await audit.record('backup.end', {
      ...told,
      result: 'success',
      size,
      sha256: written.sha256,
      digest: manifest.audit.hash,
      duration: now() - begin,
      reason: `${manifest.sessions.all} sessions, ${manifest.recordings.all} recordings, audit log up to row ${manifest.audit.row}`,
    })
    return manifest
  } catch (error) {
    await clear(folder, isNew)
    const reason = error instanceof Error ? error.message : String(error)
    await audit.record('backup.end', { ...told, result: 'failure', reason, duration: now() - begin })
    throw error
  }
}

function partsOf({ withMasterKey, withRecordings }: BackupOptions): string[] {
  return [
    'database',
    'keys',
    ...(withRecordings ? ['recordings'] : []),
    ...(withMasterKey ? ['master_key'] : []),
  ]
}

/** Makes the folder, or uses an empty one. @returns whether it was made */
async function openFolder(folder: string, { dataDir, recordings }: Config): Promise<boolean> {
  const parent = await realpath(dirname(folder)).catch(() => {
    throw new BackupError(`there is no folder ${dirname(folder)} to make the backup in`)
  })
  const place = existsSync(folder) ? await realpath(folder) : join(parent, basename(folder))
  for (const within of [dataDir, recordings.directory]) {
    const real = await realpath(within)
    if (place === real || place.startsWith(real + sep)) {
      throw new BackupError(`${folder} lies in ${within}, and would be lost with it: take another place`)
    }
  }
  try {
    await mkdir(folder, { mode: 0o700 })
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const { mode, uid } = await stat(folder)
  if ((mode & 0o077) !== 0 || uid !== process.geteuid?.()) {
    const found = `mode ${(mode & 0o777).toString(8)}, user ${uid}`
    throw new BackupError(
      `${folder} is open to other users (${found}): chmod 700 ${folder}, or name a new folder`,
    )
  }
  const [entry] = await readdir(folder)
  if (entry !== undefined) {
    throw new BackupError(
      existsSync(join(folder, MANIFEST))
        ? `${folder} holds a backup already: name a new folder`
        : `${folder} is not empty (${entry}): name a new folder, or remove what a backup that was interrupted has left`,
    )
  }
  return false
}

async function clear(folder: string, isNew: boolean): Promise<void> {
  if (isNew) return await rm(folder, { recursive: true, force: true })
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true })
}

async function fill(options: BackupOptions): Promise<{ manifest: Manifest; written: Copied }> {
  const { folder, config, recordingService, audit, signal, now } = options
  const { withRecordings: containers } = options
  const recordings = await RecordingBackup.begin({
    root: recordingService.root,
    target: folder,
    containers,
    signal,
  })
  // The copy then ends with a signed row, except for events in between.
  await audit.checkpoint({ always: true })
  const { signed } = audit
  const database = join(folder, DATABASE)
  await copyInto(config.database, database, { folder: config.dataDir, now, signal })
  requireSound(database)
  const created = new Date(now()).toISOString()
  signal.throwIfAborted()
  const copy = await openStore({ path: database, now })
  let state: Pick<Manifest, 'audit' | 'sessions' | 'recordings' | 'master_key'>
  try {
    await requireRow(copy, signed)
    state = {
      ...(await headOf(copy)),
      recordings: { containers, ...(await recordings.finish(copy.sessions)) },
      master_key: await keepMasterKey(copy, options),
    }
  } finally {
    await copy.close()
  }
  await syncFile(database)
  const files = await Promise.all(
    [DATABASE, RECORDING_LIST, ...(options.withMasterKey ? [MASTER_KEY] : [])].map(async (path) => ({
      path,
      ...(await measure(join(folder, path))),
    })),
  )
  files.push(...(await sealDataFiles(folder, config, recordingService.keys.recipient)))
  const { version: program } = options
  const manifest = newManifest({
    program,
    schema: SCHEMA_VERSION,
    created,
    hostname: config.hostname,
    ...state,
    files,
  })
  return { manifest, written: await seal(folder, manifest, recordingService) }
}

/** @throws BackupError if the copy lacks the row that this process has just written */
async function requireRow({ audit }: Store, signed: Head | undefined): Promise<void> {
  if (!signed)
    throw new BackupError('no checkpoint of the audit log could be written: see the message before')
  const { sequence, hash } = signed
  const [row] = await audit.range(sequence, 1)
  if (row?.sequence === sequence && Buffer.from(row.hash).equals(hash)) return
  throw new BackupError(
    `the copied database lacks row ${sequence} of the audit log, which this backup has written before: the server's ` +
      'place was taken by another one meanwhile. Make it again',
  )
}

async function headOf(store: Store): Promise<Pick<Manifest, 'audit' | 'sessions'>> {
  const last = await store.audit.last()
  if (!last) throw new BackupError('the audit log is empty: start the broker once')
  const nothing = { limit: 0, offset: 0 }
  const { total: all } = await store.sessions.list({}, nothing)
  const { total: running } = await store.sessions.list({ status: 'current' }, nothing)
  return {
    audit: { row: last.sequence, hash: Buffer.from(last.hash).toString('hex') },
    sessions: { all, running },
  }
}

/** Finds the key that opens the copied database, by its fingerprint, and copies it if requested. */
async function keepMasterKey(
  copy: Store,
  { folder, config, withMasterKey }: BackupOptions,
): Promise<Manifest['master_key']> {
  const key = await readMasterKey(config.masterKey)
  try {
    if (!(await fits(copy.settings, key))) {
      throw new BackupError('the master key was replaced while the backup was made: make it again')
    }
    if (withMasterKey) {
      const text = formatMasterKey(key)
      await writeNewFile(join(folder, MASTER_KEY), text.reveal())
      text.wipe()
    }
    return { fingerprint: fingerprint(key), included: withMasterKey }
  } finally {
    key.wipe()
  }
}

/** Seals host keys, certificates, and other files of the data folder that the configuration names. */
async function sealDataFiles(folder: string, config: Config, recipient: string): Promise<Manifest['files']> {
  const files: Manifest['files'] = []
  for (const place of await dataFiles(config)) {
    const path = join(DATA, place) + SEALED
    await makeFolders(folder, dirname(path))
    // The data folder is the broker's own, so its administrator made a link in it.
    await sealFile(await realpath(join(config.dataDir, place)), join(folder, path), recipient)
    files.push({ path, ...(await measure(join(folder, path))) })
    await syncDirectory(dirname(join(folder, path)))
  }
  return files
}

async function dataFiles(config: Config): Promise<string[]> {
  const { dataDir, listen, ssh, syslog, recordings, masterKey } = config
  const named = [
    listen.https?.certificate,
    listen.https?.key,
    ssh.revokedKeys,
    ssh.revokedHostKeys,
    recordings.objectStore?.ca,
    ...ssh.hostCertificates,
    ...ssh.userCa,
    ...syslog.map(({ ca }) => ca),
  ]
    .filter((path) => path !== undefined)
    .map((path) => relative(dataDir, path))
    .filter((path) => path !== '' && !path.startsWith('..') && existsSync(join(dataDir, path)))
  const own: string[] = []
  for (const name of ['ssh', 'tls']) {
    const below = existsSync(join(dataDir, name)) ? await readdir(join(dataDir, name)) : []
    // `.new`: a key that is being made.
    own.push(...below.filter((file) => !file.endsWith('.new')).map((file) => join(name, file)))
  }
  const secret = 'file' in masterKey ? relative(dataDir, masterKey.file) : undefined
  return [...new Set([...own, ...named])].filter((path) => path !== secret).sort()
}

/** Completes the backup: this is the last step. */
async function seal(folder: string, manifest: Manifest, recordingService: RecordingService): Promise<Copied> {
  const bytes = encodeManifest(manifest)
  await writeNewFile(join(folder, SIGNATURE), signManifest(bytes, recordingService.keys.signing))
  const draft = join(folder, `${MANIFEST}.new`)
  await writeNewFile(draft, bytes)
  const written = await measure(draft)
  await rename(draft, join(folder, MANIFEST))
  await syncDirectory(folder)
  await syncDirectory(dirname(folder))
  return written
}

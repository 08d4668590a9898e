/**
 * Restores a backup into the configuration's data folder, completely or so that no broker starts there: hashes, the
 * manifest's signature and the chain of the audit log are verified on copies before any of them is moved into place.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { lstat, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { auditAnchor } from '../audit/anchor.ts'
import { AuditLog, type AuditLogOptions } from '../audit/log.ts'
import { anchorFault, verifyAudit } from '../audit/verify.ts'
import type { Config } from '../config/config.ts'
import { DATABASE_ID } from '../host/data-folder.ts'
import { noteRestore, restoredFrom } from '../recording-service/restored.ts'
import { openRecordingKeys, type RecordingKeys } from '../recording-service/service.ts'
import { UnknownOutcomeError } from '../store/engine/errors.ts'
import { requireSound } from '../store/engine/snapshot.ts'
import { SCHEMA_VERSION } from '../store/migrate.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import type { MasterKeySource } from '../vault/key-file.ts'
import { openVault } from '../vault/vault.ts'
import { BackupError, type Copied, copyFile, makeFolders, readSmall, TrustedFolder } from './files.ts'
import { readList } from './list.ts'
import {
  DATABASE,
  dataPlace,
  entryOf,
  isSigned,
  MANIFEST,
  MASTER_KEY,
  MAX_MANIFEST,
  MAX_SIGNATURE,
  type Manifest,
  parseManifest,
  RECORDING_LIST,
  RECORDINGS,
  SEALED,
  SIGNATURE,
} from './manifest.ts'
import { openSealed } from './sealed.ts'
import { RestoreTarget } from './target.ts'

export interface RestoreOptions {
  config: Config
  /** Folder of the backup. */
  folder: string
  /** User that restores the backup. */
  actor: NonNullable<AuditLogOptions['actor']>
  /** Milliseconds since the epoch. */
  now: () => number
  environment?: Readonly<Record<string, string | undefined>>
}

export interface Restored {
  manifest: Manifest
  /** Source of the master key. */
  masterKey: 'configured' | 'backup'
}

/**
 * Restores the backup. If the backup is incomplete, or of another master key, it changes nothing and throws; so it does
 * if it cannot be finished, unless no server can tell whether it was: then no broker starts before it is run again.
 * @throws BackupError, StoreError
 */
export async function restoreBackup(options: RestoreOptions): Promise<Restored> {
  const { config } = options
  const path = await realpath(options.folder).catch(() => {
    throw new BackupError(`there is no backup ${options.folder}`)
  })
  await lstat(join(path, MANIFEST)).catch((error: NodeJS.ErrnoException) => {
    throw new BackupError(
      error.code === 'ENOENT'
        ? `${path} is no whole backup: it has no ${MANIFEST}, which is written last`
        : `${path} cannot be read by the user who runs this (${error.code}): give it to that user, or restore as its owner`,
    )
  })
  const target = await RestoreTarget.open(config, options.now)
  try {
    const owners = [process.geteuid?.() ?? 0, 0, ...(target.owner ? [target.owner.uid] : [])]
    const restore = await Restore.open(new TrustedFolder(path, owners), target, options)
    await target.begin()
    try {
      return await restore.run()
    } catch (error) {
      // Without its data folder a full database would be half a bastion, and a broker could start on it.
      if (error instanceof UnknownOutcomeError)
        throw new BackupError(
          `${error.message}; no broker starts in ${config.dataDir} until it is restored: make that database anew ` +
            '(drop and create it), then run this again',
        )
      await target.destroy()
      throw error
    }
  } finally {
    await target.close()
  }
}

class Restore {
  readonly #source: TrustedFolder
  readonly #target: RestoreTarget
  readonly #options: RestoreOptions
  readonly #manifest: Manifest
  /** Unchanged bytes of the manifest. */
  readonly #bytes: Buffer

  private constructor(source: TrustedFolder, target: RestoreTarget, options: RestoreOptions, bytes: Buffer) {
    this.#source = source
    this.#target = target
    this.#options = options
    this.#bytes = bytes
    this.#manifest = parseManifest(bytes, join(source.path, MANIFEST))
  }

  static async open(source: TrustedFolder, target: RestoreTarget, options: RestoreOptions): Promise<Restore> {
    const bytes = await readSmall(await source.file(MANIFEST), MAX_MANIFEST)
    const restore = new Restore(source, target, options, bytes)
    const { schema, program } = restore.#manifest
    if (schema > SCHEMA_VERSION) {
      throw new BackupError(
        `the backup was made by sallyport ${program} with schema version ${schema}, this program knows up to ` +
          `${SCHEMA_VERSION}: restore it with the newer program`,
      )
    }
    restore.#masterKey()
    return restore
  }

  async run(): Promise<Restored> {
    const target = this.#target
    await this.#copy(DATABASE, target.database)
    requireSound(target.database)
    const masterKey = await this.#takeMasterKey()
    const store = await openStore({ path: target.database, now: this.#options.now })
    try {
      await this.#prove(store, masterKey.source)
    } finally {
      await store.close()
    }
    if (existsSync(`${target.database}-wal`)) {
      throw new BackupError(`${target.database} is open elsewhere: try again`)
    }
    await target.place()
    return { manifest: this.#manifest, masterKey: masterKey.from }
  }

  /**
   * Verifies that this broker has made the backup, and that its log is in order; then copies the other files
   * and logs the restore.
   */
  async #prove(store: Store, source: MasterKeySource): Promise<void> {
    const { now, actor } = this.#options
    const manifest = this.#manifest
    const vault = await openVault(store, source)
    const keys = await openRecordingKeys(store.settings, vault)
    const signature = await readSmall(await this.#source.file(SIGNATURE), MAX_SIGNATURE)
    if (!isSigned(this.#bytes, signature, keys.signer)) {
      throw new BackupError(
        `${join(this.#source.path, MANIFEST)} is not signed by the broker of this backup: it was changed`,
      )
    }
    const anchor = auditAnchor({ ...store, vault })
    const noted = await anchor.read()
    const head = { sequence: manifest.audit.row, hash: Buffer.from(manifest.audit.hash, 'hex') }
    const known = noted ? [noted, head] : [head]
    const { fault } = anchorFault(await verifyAudit(store.audit, { trusted: keys.trusted, known }), noted)
    if (fault) {
      throw new BackupError(
        `the audit log of the backup is not in order: row ${fault.sequence}: ${fault.code}: ${fault.message}`,
      )
    }
    await this.#takeFiles(keys)
    await this.#takeRecordings()
    // Ended or used up since the backup, perhaps: none of them may come back.
    await store.signIns.endAll()
    await store.offlineProofs.removeAll()
    await store.tickets.removeAll()
    await store.invitations.removeAll()
    await store.idempotency.releaseAll()
    await this.#renameDatabase(store)
    await noteRestore(store.settings, { created: manifest.created, row: manifest.audit.row })
    const problems: Error[] = []
    const audit = new AuditLog({
      repository: store.audit,
      now,
      actor,
      checkpoints: { key: keys.signing, anchor, onError: (error) => problems.push(error) },
    })
    await audit.record('backup.restore', {
      object: this.#source.path,
      method: manifest.recordings.containers ? 'recordings' : 'database',
      sha256: createHash('sha256').update(this.#bytes).digest('hex'),
      digest: manifest.audit.hash,
      reason: restoredFrom({ created: manifest.created, row: manifest.audit.row }),
    })
    await audit.close()
    if (problems[0]) throw problems[0]
  }

  /** Gives it an id of its own: the data folder of the bastion that it is a copy of must not fit it. */
  async #renameDatabase({ settings }: Store): Promise<void> {
    await settings.remove(DATABASE_ID)
    if (!this.#target.isServers) return
    const id = randomUUID()
    await settings.set(DATABASE_ID, Buffer.from(id))
    await this.#target.noteDatabase(id)
  }

  async #takeFiles({ identities }: RecordingKeys): Promise<void> {
    for (const { path } of this.#manifest.files) {
      const place = dataPlace(path)
      if (place === undefined) continue
      const file = await this.#target.dataFile(place)
      const sealed = file + SEALED
      await this.#copy(path, sealed)
      await openSealed(sealed, file, identities, this.#target.owner)
      await rm(sealed)
    }
  }

  async #takeRecordings(): Promise<void> {
    const { recordings, owner } = this.#target
    const list = join(recordings, RECORDING_LIST)
    await this.#copy(RECORDING_LIST, list)
    for await (const { folder, files } of readList(list)) {
      const made = await makeFolders(recordings, folder, owner)
      for (const { name, ...measured } of files) {
        await this.#copyMeasured(join(RECORDINGS, folder, name), join(made, name), measured)
      }
    }
    await rm(list)
  }

  /** Returns the present or the future place of the master key. @throws BackupError if there is none */
  #masterKey(): { source: MasterKeySource; from: Restored['masterKey'] } {
    const { config, environment = process.env } = this.#options
    const { fingerprint, included } = this.#manifest.master_key
    const { masterKey: source } = config
    const lacks = `the backup needs the master key of fingerprint ${fingerprint}`
    if ('env' in source) {
      if (environment[source.env] !== undefined) return { source, from: 'configured' }
      const way = included
        ? `set it to what ${join(this.#source.path, MASTER_KEY)} holds`
        : 'set it to that key'
      throw new BackupError(`${lacks}, and the environment variable ${source.env} is not set: ${way}`)
    }
    if (existsSync(source.file)) return { source, from: 'configured' }
    if (included && this.#target.masterKey !== undefined) {
      return { source: { file: this.#target.masterKey }, from: 'backup' }
    }
    throw new BackupError(
      `${lacks}, and there is no ${source.file}: put that key there, with mode 0600, and run this again; ` +
        'without it nothing in the backup can be opened',
    )
  }

  async #takeMasterKey() {
    const key = this.#masterKey()
    if (key.from === 'backup' && 'file' in key.source) await this.#copy(MASTER_KEY, key.source.file)
    return key
  }

  #copy(name: string, to: string): Promise<void> {
    return this.#copyMeasured(name, to, entryOf(this.#manifest, name))
  }

  /** @throws BackupError if the file differs from its manifest entry */
  async #copyMeasured(name: string, to: string, { size, sha256 }: Copied): Promise<void> {
    const path = await this.#source.file(name)
    const { owner } = this.#target
    // One byte more is enough to detect a longer file.
    const copied = await copyFile(path, to, { length: size + 1, owner })
    if (copied.size < size)
      throw new BackupError(`${path} has ${copied.size} bytes, expected ${size}: it was cut`)
    if (copied.size > size) throw new BackupError(`${path} has more than ${size} bytes: it was changed`)
    if (copied.sha256 !== sha256)
      throw new BackupError(`${path} was changed: its SHA-256 is not that of the manifest`)
  }
}

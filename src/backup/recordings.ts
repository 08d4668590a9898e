/**
 * Copies recordings into a backup, beside a broker that records, seals, moves and deletes them. Closed
 * recordings are copied before the database, the others after it: so a recording that the database has as
 * closed is in the backup in its closed form, however long the copying takes. Recordings with a tombstone in
 * the database are removed again.
 */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { Fault } from '../../recordings/container/format/error.ts'
import { FILE_NAME, KEY_FILE_NAME } from '../../recordings/container/format/limits.ts'
import { readPieces, syncDirectory } from '../../recordings/container/session-file.ts'
import { Verifier } from '../../recordings/container/verify.ts'
import { recordingAt, recordingsIn } from '../../recordings/storage/catalog.ts'
import type { CatalogEntry } from '../../recordings/storage/catalog-entry.ts'
import { STORED_NAME } from '../../recordings/storage/stored-away.ts'
import type { SessionRepository } from '../store/store.ts'
import { copyFile, makeFolders } from './files.ts'
import { type ListedRecording, ListWriter, readList, sessionOf } from './list.ts'
import { RECORDING_LIST, RECORDINGS } from './manifest.ts'

/** Draft of the list, which may name recordings that are deleted meanwhile. */
const DRAFT = `${RECORDING_LIST}.new`
/** Faults of a file that is still being written. */
const GROWING: ReadonlySet<Fault> = new Set(['cut_tail', 'not_closed'])
/** Attempts: a recording may be moved to the object store once while it is copied. */
const ATTEMPTS = 3

export interface RecordingBackupOptions {
  /** The recordings' folder. */
  root: string
  /** The backup's folder. */
  target: string
  /** Set to copy the recordings themselves, too. */
  containers: boolean
  /** Stops the copying between two recordings. */
  signal: AbortSignal
}

export class RecordingBackup {
  readonly #options: RecordingBackupOptions
  readonly #draft: ListWriter
  /** Recordings that were still open at the first pass. */
  readonly #running = new Set<string>()

  private constructor(options: RecordingBackupOptions, draft: ListWriter) {
    this.#options = options
    this.#draft = draft
  }

  /** Copies the closed recordings; call it before the database is copied. */
  static async begin(options: RecordingBackupOptions): Promise<RecordingBackup> {
    await makeFolders(options.target, RECORDINGS)
    const backup = new RecordingBackup(options, await ListWriter.create(join(options.target, DRAFT)))
    for await (const entry of recordingsIn(options.root)) {
      options.signal.throwIfAborted()
      if (isClosed(entry)) await backup.#copy(entry)
      else backup.#running.add(entry.session)
    }
    return backup
  }

  /**
   * Copies the other recordings that the copied database has, and writes the list.
   * @returns the number of recordings in it, and the bytes of their files
   */
  async finish(known: Pick<SessionRepository, 'find'>): Promise<{ all: number; bytes: number }> {
    const { root, target, signal } = this.#options
    for await (const entry of recordingsIn(root)) {
      signal.throwIfAborted()
      if (existsSync(join(target, RECORDINGS, relative(root, entry.directory)))) continue
      // Later recordings belong to the next backup.
      if (this.#running.has(entry.session) || (await known.find(entry.session))) await this.#copy(entry)
    }
    return await this.#leave(known)
  }

  async #leave(known: Pick<SessionRepository, 'find'>): Promise<{ all: number; bytes: number }> {
    const { target } = this.#options
    const list = await ListWriter.create(join(target, RECORDING_LIST))
    for await (const recording of readList(join(target, DRAFT))) {
      const session = await known.find(sessionOf(recording))
      if (session?.recording?.state !== 'deleted') await list.add(recording)
      else await rm(join(target, RECORDINGS, recording.folder), { recursive: true })
    }
    await list.finish()
    await rm(join(target, DRAFT))
    return { all: list.count, bytes: list.bytes }
  }

  async #copy(entry: CatalogEntry): Promise<void> {
    const { root, target } = this.#options
    const folder = relative(root, entry.directory)
    for (let attempt = 1; ; attempt++) {
      const made = await makeFolders(join(target, RECORDINGS), folder)
      try {
        const recording = await this.#copyFiles(await recordingAt(entry.session, entry.directory), made)
        await syncDirectory(made)
        await this.#draft.add({ folder, ...recording })
        return
      } catch (error) {
        await rm(made, { recursive: true })
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
        // The recording was deleted meanwhile, with its tombstone; or moved to the object store, which is
        // another form of it.
        if (!existsSync(entry.directory)) return
        if (attempt === ATTEMPTS) throw error
      }
    }
  }

  async #copyFiles(entry: CatalogEntry, to: string): Promise<Omit<ListedRecording, 'folder'>> {
    const { containers } = this.#options
    const files: ListedRecording['files'] = []
    const copy = async (name: ListedRecording['files'][number]['name'], length?: number) => {
      const limit = length === undefined ? {} : { length }
      files.push({ name, ...(await copyFile(join(entry.directory, name), join(to, name), limit)) })
    }
    const { state, size, digest } = isClosed(entry) ? entry : await wholeRecords(entry)
    if (existsSync(join(entry.directory, KEY_FILE_NAME))) await copy(KEY_FILE_NAME)
    if (entry.stored) await copy(STORED_NAME)
    else if (containers && size > 0) await copy(FILE_NAME, size)
    return { state, size, ...(digest !== undefined && { digest }), files }
  }
}

const isClosed = ({ state }: CatalogEntry): boolean =>
  state === 'sealed' || state === 'recovered' || state === 'failed'

/**
 * Returns a recording that is being written up to its last whole record. A damaged one is copied as it is.
 */
async function wholeRecords({
  directory,
  session,
  state,
  size,
}: CatalogEntry): Promise<Pick<CatalogEntry, 'state' | 'size' | 'digest'>> {
  if (size === 0) return { state, size }
  const verifier = new Verifier({ session })
  for await (const piece of readPieces(join(directory, FILE_NAME))) verifier.push(piece)
  const { fault, goodSize, size: read, digest, state: closing } = verifier.finish()
  if (fault && !GROWING.has(fault.code)) return { state, size: read }
  // It may have been closed while it was read.
  return { state: closing, size: goodSize, ...(goodSize > 0 && { digest }) }
}

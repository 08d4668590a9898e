/**
 * The data folder that a restore fills. It has to be empty except for surviving recordings and the master
 * key. All files are prepared in a folder `restoring` first, and moved to their places at the end, the
 * database last; until then that folder prevents every broker from starting, and an interrupted restore can
 * be run again.
 */
import { existsSync } from 'node:fs'
import { chown, mkdir, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncDirectory } from '../../recordings/container/session-file.ts'
import type { Config } from '../config/config.ts'
import { DATABASE_ID, holdDataFolder, makeDataFolder, RESTORING } from '../host/data-folder.ts'
import { type DatabaseTarget, databaseTarget } from './database.ts'
import { BackupError, makeFolders, measure, type Owner, writeNewFile } from './files.ts'
import { DATA } from './manifest.ts'

/** Files left by a stopped broker, by a volume, and by a restore. */
const LOCKS = ['sallyport.lock', 'sallyport.lock-journal']
const HARMLESS = [...LOCKS, 'sallyport.pid', 'lost+found', RESTORING]
/** Note in `restoring` of what is moved to its place. */
const PLACING = 'placing.json'
/** End of the name of a master key that is prepared. */
const SUFFIX = '.restoring'

interface Placing {
  /** Names in the data folder. */
  names: readonly string[]
  /** SHA-256 of the file of the backup's master key, if it is moved too: another one in its place is not touched. */
  masterKey?: string
}

export class RestoreTarget {
  /** Path of a master key. */
  readonly masterKey: string | undefined
  /** Path of the recordings. */
  readonly recordings: string
  /** Owner of the data folder, if it is another user than the restoring one. */
  owner: Owner | undefined
  readonly #config: Config
  readonly #database: DatabaseTarget
  readonly #isNew: boolean
  /** Files that locking the folder makes. */
  readonly #locks: readonly string[]
  readonly #release: () => void

  private constructor(config: Config, now: () => number, isNew: boolean) {
    const { masterKey, recordings, dataDir } = config
    this.#config = config
    this.#database = databaseTarget(config, now)
    this.#isNew = isNew
    this.#locks = LOCKS.map((name) => join(dataDir, name)).filter((path) => !existsSync(path))
    this.#release = holdDataFolder(dataDir)
    this.masterKey = 'file' in masterKey ? masterKey.file + SUFFIX : undefined
    this.recordings = join(recordings.directory, RESTORING)
  }

  /**
   * Makes the folder, or uses one that is as good as empty; removes the files of an interrupted restore.
   * `now` in milliseconds since the epoch.
   * @throws BackupError naming the present files, or StoreError about the present database
   */
  static async open(config: Config, now: () => number): Promise<RestoreTarget> {
    const { dataDir } = config
    const isNew = !existsSync(dataDir)
    makeDataFolder(dataDir)
    const target = new RestoreTarget(config, now, isNew)
    try {
      const { uid, gid } = await stat(dataDir)
      if (uid !== process.geteuid?.()) target.owner = { uid, gid }
      if (existsSync(join(dataDir, RESTORING))) {
        // It may be full, if the answer to the commit was lost: the files stay then, and keep brokers away from it.
        if (target.isServers) await target.#database.requireFree()
        await target.#clear()
      }
      await target.#requireEmpty()
      return target
    } catch (error) {
      await target.close()
      throw error
    }
  }

  /** Path at which the database is prepared. */
  get database(): string {
    return this.#database.draft
  }

  /** Whether the database is a server's, which has an id. */
  get isServers(): boolean {
    return this.#database.file === undefined
  }

  /** Releases the folder: a broker may start here again. Removes a folder that was made and is empty. */
  async close(): Promise<void> {
    const { dataDir } = this.#config
    await this.#database.close()
    this.#release()
    // Files made by root would prevent another user's broker from starting.
    for (const path of this.#locks) await rm(path, { force: true })
    const isEmpty = (await readdir(dataDir)).length === 0
    if (this.#isNew && isEmpty) await rmdir(dataDir)
  }

  async #requireEmpty(): Promise<void> {
    const { dataDir, recordings, masterKey } = this.#config
    const mayStay = new Set(HARMLESS.map((name) => join(dataDir, name)))
    mayStay.add(recordings.directory)
    if ('file' in masterKey) mayStay.add(masterKey.file)
    const found = (await readdir(dataDir)).filter((name) => {
      const path = join(dataDir, name)
      return ![...mayStay].some((one) => one === path || one.startsWith(`${path}/`))
    })
    if (found.length > 0) {
      const shown =
        found.length > 5 ? `${found.slice(0, 5).join(', ')} and ${found.length - 5} more` : found.join(', ')
      throw new BackupError(
        `the data folder ${dataDir} is not empty (${shown}), and a restore writes over nothing: move it away ` +
          `(mv ${dataDir} ${dataDir}.old), and move its recordings and the master key back if they are to stay`,
      )
    }
    await this.#database.requireFree()
  }

  /** Prevents brokers from starting here, until `place` or `destroy`. */
  async begin(): Promise<void> {
    const { dataDir, recordings } = this.#config
    await mkdir(join(dataDir, RESTORING, DATA), { recursive: true, mode: 0o700 })
    await this.#database.begin()
    const isMade = await mkdir(recordings.directory, { recursive: true, mode: 0o700 })
    if (isMade !== undefined && this.owner) await chown(recordings.directory, this.owner.uid, this.owner.gid)
    await mkdir(this.recordings, { mode: 0o700 })
    await syncDirectory(dataDir)
  }

  /**
   * Returns the path at which a file of the data folder is prepared. @throws BackupError if its place is
   * taken
   */
  async dataFile(place: string): Promise<string> {
    const { dataDir, recordings, masterKey } = this.#config
    const path = join(dataDir, place)
    const own = [this.#database.file, recordings.directory, 'file' in masterKey ? masterKey.file : undefined]
    const isTaken =
      own
        .filter((one) => one !== undefined)
        .some((one) => one === path || path.startsWith(`${one}/`) || one.startsWith(`${path}/`)) ||
      [...HARMLESS, DATABASE_ID, 'sallyport.pid', 'search.db'].some(
        (name) => place === name || place.startsWith(`${name}/`),
      )
    if (isTaken) throw new BackupError(`the backup has a file ${place}, where this broker has something else`)
    await makeFolders(join(dataDir, RESTORING, DATA), dirname(place), this.owner)
    return join(dataDir, RESTORING, DATA, place)
  }

  /** Prepares the note that a server's database of this id belongs to the folder. */
  async noteDatabase(id: string): Promise<void> {
    await writeNewFile(join(this.#config.dataDir, RESTORING, DATA, DATABASE_ID), `${id}\n`, this.owner)
  }

  /** Moves all files to their places, the database last. Existing files of a recording stay. */
  async place(): Promise<void> {
    const { dataDir, masterKey, recordings } = this.#config
    await this.#database.load()
    const staged = join(dataDir, RESTORING, DATA)
    await this.#placeRecordings(this.recordings, recordings.directory)
    await syncDirectory(recordings.directory)
    const names = await readdir(staged)
    // Written before the first move, so that the next restore can remove these files.
    const key = this.masterKey !== undefined && existsSync(this.masterKey) ? this.masterKey : undefined
    const placing: Placing = { names, ...(key !== undefined && { masterKey: (await measure(key)).sha256 }) }
    await writeNewFile(join(dataDir, RESTORING, PLACING), JSON.stringify(placing))
    await syncDirectory(join(dataDir, RESTORING))
    for (const name of names) await rename(join(staged, name), join(dataDir, name))
    if (key !== undefined && 'file' in masterKey) {
      await rename(key, masterKey.file)
      await syncDirectory(dirname(masterKey.file))
    }
    await syncDirectory(dataDir)
    await rm(this.recordings, { recursive: true })
    await this.#database.place(this.owner)
    await rm(join(dataDir, RESTORING), { recursive: true })
    await syncDirectory(dataDir)
  }

  async #placeRecordings(from: string, to: string): Promise<void> {
    for (const entry of await readdir(from, { withFileTypes: true })) {
      const [source, target] = [join(from, entry.name), join(to, entry.name)]
      if (!existsSync(target)) await rename(source, target)
      else if (entry.isDirectory()) {
        await this.#placeRecordings(source, target)
        await syncDirectory(target)
      }
    }
  }

  /** Restores the folder's former state. */
  async destroy(): Promise<void> {
    await this.#clear()
    const { recordings } = this.#config
    if (this.#isNew && existsSync(recordings.directory) && (await readdir(recordings.directory)).length === 0)
      await rmdir(recordings.directory)
  }

  async #clear(): Promise<void> {
    const { dataDir, recordings, masterKey } = this.#config
    const placed = await this.#placed()
    for (const name of placed?.names ?? []) await rm(join(dataDir, name), { recursive: true, force: true })
    if (placed?.masterKey !== undefined && 'file' in masterKey && existsSync(masterKey.file)) {
      const { sha256 } = await measure(masterKey.file)
      if (sha256 === placed.masterKey) await rm(masterKey.file)
    }
    await this.#database.clear(placed !== undefined)
    if (this.masterKey !== undefined) await rm(this.masterKey, { force: true })
    if (existsSync(recordings.directory)) await rm(this.recordings, { recursive: true, force: true })
    await rm(join(dataDir, RESTORING), { recursive: true, force: true })
  }

  /**
   * Returns what an interrupted restore has begun to move to its place, or undefined if there is nothing. No broker
   * has started there since.
   */
  async #placed(): Promise<Placing | undefined> {
    const file = join(this.#config.dataDir, RESTORING, PLACING)
    if (!existsSync(file)) return undefined
    const placing = JSON.parse(await readFile(file, 'utf8')) as Placing
    return { ...placing, names: placing.names.map((name) => basename(name)) }
  }
}

/** Where a restore puts the database: a file's place, or an empty database of a server. It writes over nothing. */
import { existsSync } from 'node:fs'
import { chown, mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncDirectory } from '../../recordings/container/session-file.ts'
import type { Config } from '../config/config.ts'
import { RESTORING } from '../host/data-folder.ts'
import type { PostgresPlace } from '../model/database.ts'
import type { EmptyDatabase } from '../store/copy/empty.ts'
import { BackupError, type Owner } from './files.ts'

const SUFFIX = '.restoring'
/** Endings of a file of SQLite and of those beside it. */
const ENDINGS = ['', '-wal', '-shm']

export interface DatabaseTarget {
  /** Path of the file in which the database is prepared. */
  readonly draft: string
  /** The database's file. Undefined for a server's. */
  readonly file: string | undefined
  /**
   * Makes sure that the place is free; no broker can take a server's until `close`. Called again, it does nothing
   * there.
   * @throws BackupError or StoreError that names what is there
   */
  requireFree(): Promise<void>
  /** Makes the folder of the draft. */
  begin(): Promise<void>
  /** Writes the whole draft to a server; no other connection sees any of it before `place`. */
  load(): Promise<void>
  /** Makes the database appear in its place. */
  place(owner: Owner | undefined): Promise<void>
  /** Removes the draft, and what `place` has made if `isPlaced`. */
  clear(isPlaced: boolean): Promise<void>
  close(): Promise<void>
}

/** Returns the configuration's place, untouched. `now` in milliseconds since the epoch. */
export function databaseTarget(
  { database, dataDir }: Pick<Config, 'database' | 'dataDir'>,
  now: () => number,
): DatabaseTarget {
  return 'file' in database
    ? new FileTarget(database.file)
    : new ServerTarget(database.postgres, join(dataDir, RESTORING, 'sallyport.db'), now)
}

class FileTarget implements DatabaseTarget {
  readonly draft: string
  readonly file: string

  constructor(file: string) {
    this.file = file
    this.draft = file + SUFFIX
  }

  async requireFree(): Promise<void> {
    const found = ENDINGS.find((end) => existsSync(this.file + end))
    if (found === undefined) return
    throw new BackupError(
      `there is a database ${this.file}${found}, and a restore writes over nothing: move it away`,
    )
  }

  async begin(): Promise<void> {
    await mkdir(dirname(this.file), { recursive: true, mode: 0o700 })
  }

  async load(): Promise<void> {}

  async place(owner: Owner | undefined): Promise<void> {
    if (owner) await chown(this.draft, owner.uid, owner.gid)
    await rename(this.draft, this.file)
    await syncDirectory(dirname(this.file))
  }

  async clear(isPlaced: boolean): Promise<void> {
    if (isPlaced) await rm(this.file, { force: true })
    for (const end of ENDINGS) await rm(this.draft + end, { force: true })
  }

  async close(): Promise<void> {}
}

class ServerTarget implements DatabaseTarget {
  readonly draft: string
  readonly file = undefined
  readonly #place: PostgresPlace
  readonly #now: () => number
  #empty: EmptyDatabase | undefined

  constructor(place: PostgresPlace, draft: string, now: () => number) {
    this.#place = place
    this.draft = draft
    this.#now = now
  }

  async requireFree(): Promise<void> {
    const { EmptyDatabase } = await import('../store/copy/empty.ts')
    this.#empty ??= await EmptyDatabase.open(this.#place, this.#now)
  }

  async begin(): Promise<void> {}

  async load(): Promise<void> {
    await this.#empty?.load(this.draft)
  }

  async place(): Promise<void> {
    await this.#empty?.commit()
  }

  /** The draft goes with its folder, and what was not committed with the connection. */
  async clear(): Promise<void> {}

  async close(): Promise<void> {
    await this.#empty?.close()
  }
}

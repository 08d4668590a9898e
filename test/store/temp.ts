import type { Buffer } from 'node:buffer'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openStore, type StoreOptions } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { isOnPostgres, testDatabase } from '../peers/databases.ts'

export interface TemporaryStore {
  store: Store
  /** The database file, in a folder of its own; on PostgreSQL, where it would be. */
  path: string
  /** Opens the same data once more, as another process would. */
  open(): Promise<Store>
  /** Runs statements beside the store. Returns the rows of the last one. */
  sql(text: string): Promise<Record<string, unknown>[]>
  /** Closes `store`, which a test may have replaced, and removes the data. */
  remove(): Promise<void>
}

type Options = Pick<StoreOptions, 'newId' | 'now'>

/** Content of a database that has its schema: fifty migrations take a tenth of a second. */
let migrated: Promise<Buffer> | undefined

async function migratedFile(): Promise<Buffer> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-schema-'))
  const path = join(folder, 'sallyport.db')
  try {
    await (await openStore({ path })).close()
    return await readFile(path)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/**
 * Opens a store with no data but the factory's, by the engine of the project: on a new file in a folder of its own,
 * under the system's temporary folder, or on a new database.
 */
export async function temporaryStore(options: Options = {}): Promise<TemporaryStore> {
  const folder = await mkdtemp(join(tmpdir(), 'sallyport-store-'))
  const path = join(folder, 'sallyport.db')
  const database = isOnPostgres() ? await testDatabase() : undefined
  if (!database) {
    migrated ??= migratedFile()
    await writeFile(path, await migrated, { mode: 0o600 })
  }
  const open = () =>
    openStore({ ...(database ? { postgres: database.place, folder } : { path }), ...options })
  const temporary: TemporaryStore = {
    store: await open(),
    path,
    open,
    sql: (text) => (database ? database.sql(text) : sqlIn(path, text)),
    async remove() {
      await temporary.store.close()
      await database?.drop()
      await rm(folder, { recursive: true, force: true })
    },
  }
  return temporary
}

async function sqlIn(path: string, text: string): Promise<Record<string, unknown>[]> {
  const database = new DatabaseSync(path, { timeout: 300_000 })
  try {
    const statements = text.split(';').filter((one) => one.trim() !== '')
    return statements.map((one) => database.prepare(one).all()).at(-1) ?? []
  } finally {
    database.close()
  }
}

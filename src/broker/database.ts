/** The configuration's database: where it is, whether it was used before, and whether it is this data folder's. */
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { DATABASE_ID } from '../host/data-folder.ts'
import { placeText } from '../model/database.ts'
import { SchemaError } from '../store/engine/errors.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { requireFitting } from '../vault/key-file.ts'

/**
 * Opens the store.
 * @throws SchemaError or MasterKeyError if it is another bastion's, which is left as it is
 */
export async function openDatabase(config: Config): Promise<Store> {
  const { database, dataDir, masterKey } = config
  if ('file' in database) return await openStore({ path: database.file })
  return await openStore({
    postgres: database.postgres,
    folder: dataDir,
    admit: async (settings) => {
      requireOwn(config, await settings?.get(DATABASE_ID))
      if (settings) await requireFitting(settings, masterKey)
    },
  })
}

/** Whether a broker has used the database before, with this data folder. */
export function wasUsed({ database, dataDir }: Config): boolean {
  return existsSync('file' in database ? database.file : join(dataDir, DATABASE_ID))
}

/** @throws Error if no broker was started yet */
export function requireUsed(config: Config): void {
  if (wasUsed(config)) return
  throw new Error(`there is no database ${placeText(config.database)} yet: start the broker once (npm start)`)
}

/**
 * Makes sure that a server's database has an id, and is the one that the data folder belongs to: its keys and
 * recordings would not fit another. Returns a function that notes the database in a new folder, to be called when its
 * keys fit.
 * @throws SchemaError if it is another bastion's
 */
export async function requireOwnDatabase(config: Config, store: Store): Promise<() => void> {
  const { database, dataDir } = config
  if ('file' in database) return () => undefined
  const id = await store.settings.setOnce(DATABASE_ID, Buffer.from(randomUUID()))
  requireOwn(config, id)
  const file = join(dataDir, DATABASE_ID)
  return () => {
    if (!existsSync(file)) writeFileSync(file, `${Buffer.from(id).toString()}\n`, { mode: 0o600 })
  }
}

/** `stored`: the id in the database; undefined if it has none. Anything fits a new data folder. */
function requireOwn({ database, dataDir }: Config, stored: Uint8Array | undefined): void {
  const file = join(dataDir, DATABASE_ID)
  if (!existsSync(file)) return
  const own = readFileSync(file, 'utf8').trim()
  const id = stored && Buffer.from(stored).toString()
  if (id === own) return
  const is = id === undefined ? 'is a new one' : `is the database of another bastion: it has the id ${id}`
  throw new SchemaError(
    `${placeText(database)} ${is}, and that of the data folder ${dataDir} has the id ${own} (${DATABASE_ID}). ` +
      'Correct database.url or data_dir',
  )
}

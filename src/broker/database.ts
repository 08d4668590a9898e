/** The configuration's database: where it is, whether it was used before, and whether it is this data folder's. */
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config/config.ts'
import { placeText } from '../model/database.ts'
import { openStore } from '../store/open.ts'
import type { Store } from '../store/store.ts'

/** Name of a PostgreSQL database's id in the settings, and of the file with the id of the folder's database. */
const ID = 'database.id'

/** Opens the store. */
export function openDatabase({ database, dataDir }: Config): Promise<Store> {
  if ('file' in database) return openStore({ path: database.file })
  return openStore({ postgres: database.postgres, folder: dataDir })
}

/** Whether a broker has used the database before, with this data folder. */
export function wasUsed({ database, dataDir }: Config): boolean {
  return existsSync('file' in database ? database.file : join(dataDir, ID))
}

/** @throws Error if no broker was started yet */
export function requireUsed(config: Config): void {
  if (wasUsed(config)) return
  throw new Error(`there is no database ${placeText(config.database)} yet: start the broker once (npm start)`)
}

/**
 * Makes sure that a server's database is the one that the data folder belongs to: its keys and recordings would not
 * fit another. Returns a function that notes the database in a new folder, to be called when its keys fit.
 * @throws Error if it is another bastion's
 */
export async function requireOwnDatabase({ database, dataDir }: Config, store: Store): Promise<() => void> {
  if ('file' in database) return () => undefined
  const file = join(dataDir, ID)
  const made = await store.settings.setOnce(ID, Buffer.from(randomUUID()))
  const id = Buffer.from(made).toString()
  if (!existsSync(file)) return () => writeFileSync(file, `${id}\n`, { mode: 0o600 })
  const own = readFileSync(file, 'utf8').trim()
  if (own === id) return () => undefined
  throw new Error(
    `${placeText(database)} is the database of another bastion: it has the id ${id}, and that of the data folder ` +
      `${dataDir} has ${own} (${ID}). Correct database.url or data_dir`,
  )
}

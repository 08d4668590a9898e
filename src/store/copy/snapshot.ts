/** A copy of a whole database in a file of SQLite, whatever its engine: as of one moment, beside those who write. */
import { closeSync, openSync } from 'node:fs'
import type { DatabasePlace } from '../../model/database.ts'
import { copyDatabase } from '../engine/snapshot.ts'
import { carryRows, transaction } from './rows.ts'
import { withSqlite } from './sqlite-side.ts'
import { tablesOfProgram } from './tables.ts'

export interface SnapshotOptions {
  /** The data folder, which knows the latest timeline of a server. */
  folder: string
  /** Milliseconds since the epoch. */
  now: () => number
  /** Stops the copy of a server's database between two steps. */
  signal: AbortSignal
}

/**
 * Copies the database, which may be in use, into a new file of SQLite, mode 0600. After an error the file is of no
 * use. It may not be on the disk yet.
 * @throws StoreError, and the signal's reason
 */
export async function copyInto(
  place: DatabasePlace,
  path: string,
  { folder, now, signal }: SnapshotOptions,
): Promise<void> {
  if ('file' in place) return await copyDatabase(place.file, path)
  closeSync(openSync(path, 'wx', 0o600))
  const { withSnapshot } = await import('./postgres-side.ts')
  await withSnapshot(place.postgres, folder, (source) =>
    withSqlite(path, false, async (file) => {
      const tables = tablesOfProgram()
      await file.migrate(now())
      await transaction(file, () => file.clear(tables))
      await carryRows(source, file, tables, {
        stored: (row) => row,
        step: (work) => transaction(file, work),
        onRows: () => signal.throwIfAborted(),
      })
    }),
  )
}

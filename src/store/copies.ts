/**
 * Copies of a whole database, whatever its engine: a file of SQLite at one moment, and back into an empty place. A
 * copy of one engine can be put into the other.
 */
import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import type { DatabasePlace, PostgresPlace } from '../model/database.ts'
import { copyDatabase } from './engine/snapshot.ts'
import { MIGRATIONS, migrate } from './migrate.ts'

export interface CopyOptions {
  /** Milliseconds since the epoch. */
  now: () => number
  /** Stops the copy of a server's database. */
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
  { now, signal }: CopyOptions,
): Promise<void> {
  if ('file' in place) return await copyDatabase(place.file, path)
  closeSync(openSync(path, 'wx', 0o600))
  const file = new DatabaseSync(path)
  try {
    migrate(file, now())
  } finally {
    file.close()
  }
  const { snapshotPostgres } = await import('./postgres/snapshot.ts')
  await snapshotPostgres(place.postgres, path, { migrations: MIGRATIONS, signal })
}

/** A server's empty database that waits for a copy. No broker can claim it. */
export interface EmptyDatabase {
  /** Writes all of the copy at `path`, of this program's schema; it is there after `commit` only. */
  load(path: string): Promise<void>
  commit(): Promise<void>
  /** Gives it back, empty unless `commit` was called. */
  close(): Promise<void>
}

/**
 * Claims an empty database of a server. `now` in milliseconds since the epoch.
 * @throws StoreClaimedError if a broker has it, SchemaError if it has tables, or is not for this program
 */
export async function openEmpty(place: PostgresPlace, now: () => number): Promise<EmptyDatabase> {
  const { EmptyPostgres } = await import('./postgres/load.ts')
  const empty = await EmptyPostgres.open(place, { migrations: MIGRATIONS, now })
  return {
    async load(path) {
      const file = new DatabaseSync(path, { readOnly: true })
      try {
        await empty.load(file)
      } finally {
        file.close()
      }
    },
    commit: () => empty.commit(),
    close: () => empty.close(),
  }
}

/** Versions of the schema, whatever the engine. */
import { SchemaError } from './errors.ts'

export interface Migration {
  version: number
  /** SQLite's text. */
  sql: string
  /** PostgreSQL's, where it is more than SQLite's with other types (postgres/migrate.ts). */
  postgres?: string
  /** Triggers that note changes of rights, made after the tables. */
  triggers?: { byName: ReadonlyMap<string, string>; postgres: string }
}

/** @throws SchemaError if a database of this version is newer than the program */
export function requireKnown(recorded: number, migrations: readonly Migration[]): void {
  const newest = migrations.at(-1)?.version ?? 0
  if (recorded <= newest) return
  throw new SchemaError(
    `the database has schema version ${recorded}, this program knows up to ${newest}: ` +
      'run the newer program, or restore a backup that was made before it',
  )
}

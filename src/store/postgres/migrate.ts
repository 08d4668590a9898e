/**
 * Brings a PostgreSQL database to this program's schema, by the same migrations as SQLite's: each in a transaction
 * of its own, which waits for other programs that start at the moment.
 */
import type pg from 'pg'
import { SchemaError } from '../engine/errors.ts'
import { type Migration, requireKnown } from '../engine/versions.ts'

/** Key of the advisory lock of migrations: `sall` as a number. */
const LOCK = 0x73616c6c

const VERSIONS = 'schema_migrations'

/** `now` in milliseconds is stored with each version. @throws SchemaError if the database is not for this program */
export async function migratePostgres(
  client: pg.Client,
  now: number,
  migrations: readonly Migration[],
): Promise<void> {
  await requireWritable(client)
  const tables = await tablesIn(client)
  if (tables.length === 0) {
    const columns = 'version bigint primary key, applied bigint not null'
    await locked(client, () => client.query(`create table if not exists ${VERSIONS} (${columns})`))
  } else requireOwn(tables)
  const known = await recordedVersion(client)
  requireKnown(known, migrations)
  for (const { version, sql, postgres } of migrations.filter((one) => known < one.version)) {
    await locked(client, async () => {
      // Read again under the lock: another process may have started at the same moment.
      if (version <= (await recordedVersion(client))) return
      await client.query(postgres ?? postgresText(sql))
      await client.query(`insert into ${VERSIONS} (version, applied) values ($1, $2)`, [version, now])
    })
  }
}

/** Returns SQLite's text of a migration for PostgreSQL: the same tables, keys and indexes. */
export function postgresText(sql: string): string {
  return (
    sql
      .replace(/\) strict(, without rowid)?;/g, ');')
      // Times in milliseconds do not fit into PostgreSQL's integer.
      .replace(/\binteger\b/g, 'bigint')
      .replace(/\bblob\b/g, 'bytea')
      // Compares bytes and folds a to z only, whatever the locale of the database.
      .replace(/\btext\b/g, 'text collate "C"')
  )
}

async function recordedVersion(client: pg.Client): Promise<number> {
  const text = `select coalesce(max(version), 0) as version from ${VERSIONS}`
  const { rows } = await client.query<{ version: number }>(text)
  return rows[0]?.version ?? 0
}

async function locked(client: pg.Client, work: () => Promise<unknown>): Promise<void> {
  await client.query('begin')
  try {
    await client.query('select pg_advisory_xact_lock($1)', [LOCK])
    await work()
    await client.query('commit')
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

async function requireWritable(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ standby: boolean; readonly: string }>(
    "select pg_is_in_recovery() as standby, current_setting('transaction_read_only') as readonly",
  )
  if (rows[0]?.standby) throw new SchemaError('it is a standby, which takes no writes: name the primary')
  if (rows[0]?.readonly !== 'off') throw new SchemaError('it is read-only')
}

async function tablesIn(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = current_schema() order by tablename',
  )
  return rows.map(({ name }) => name)
}

/** Tables of others would be mixed with ours, and may have our names. */
function requireOwn(tables: readonly string[]): void {
  if (tables.includes(VERSIONS)) return
  const shown = tables.slice(0, 3).join(', ') + (tables.length > 3 ? ', …' : '')
  throw new SchemaError(`it has tables that are not sallyport's (${shown}): name an empty database`)
}

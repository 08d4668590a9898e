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
  let known = await requireUsable(client, migrations)
  if (known === undefined) {
    known = 0
    const columns = 'version bigint primary key, applied bigint not null'
    await locked(client, () => client.query(`create table if not exists ${VERSIONS} (${columns})`))
  }
  const since = known
  for (const { version, sql, postgres } of migrations.filter((one) => since < one.version)) {
    await locked(client, async () => {
      // Read again under the lock: another process may have started at the same moment.
      if (version <= (await recordedVersion(client))) return
      await client.query(postgres ?? postgresText(sql))
      await client.query(`insert into ${VERSIONS} (version, applied) values ($1, $2)`, [version, now])
    })
  }
}

/**
 * Returns the version of the database's schema, or undefined if it has no tables.
 * @throws SchemaError if it is not for this program
 */
export async function requireUsable(
  client: pg.Client,
  migrations: readonly Migration[],
): Promise<number | undefined> {
  await requireEncoding(client)
  const tables = await tablesIn(client)
  if (tables.length === 0) {
    await requireRight(client)
    return undefined
  }
  requireOwn(tables)
  const known = await recordedVersion(client)
  requireKnown(known, migrations)
  return known
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

async function requireEncoding(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ encoding: string }>(
    "select current_setting('server_encoding') as encoding",
  )
  const encoding = rows[0]?.encoding
  if (encoding !== 'UTF8')
    throw new SchemaError(`its encoding is ${encoding}: make one with the encoding UTF8`)
}

/** Since version 15 of PostgreSQL only the owner of a database may make tables in it. */
async function requireRight(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ right: boolean | null }>(
    "select has_schema_privilege(current_schema(), 'create') as right",
  )
  if (!rows[0]?.right)
    throw new SchemaError(
      'its user may make no tables: let the user own the database (alter database … owner to …)',
    )
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

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
const MAKE_VERSIONS = `create table if not exists ${VERSIONS} (version bigint primary key, applied bigint not null)`

/** `now` in milliseconds is stored with each version. @throws SchemaError if the database is not for this program */
export async function migratePostgres(
  client: pg.ClientBase,
  now: number,
  migrations: readonly Migration[],
): Promise<void> {
  let known = await requireUsable(client, migrations)
  if (known === undefined) {
    known = 0
    await locked(client, () => client.query(MAKE_VERSIONS))
  }
  const since = known
  for (const migration of migrations.filter((one) => since < one.version)) {
    await locked(client, async () => {
      // Read again under the lock: another process may have started at the same moment.
      if ((await recordedVersion(client)) < migration.version) await apply(client, migration, now)
    })
  }
}

/**
 * Makes all tables in the client's transaction, which keeps programs that start at the moment waiting.
 * @throws SchemaError if the database has tables, or is not for this program
 */
export async function makeTables(
  client: pg.ClientBase,
  now: number,
  migrations: readonly Migration[],
): Promise<void> {
  await client.query('select pg_advisory_xact_lock($1)', [LOCK])
  await requireEmpty(client)
  await client.query(MAKE_VERSIONS)
  for (const migration of migrations) await apply(client, migration, now)
}

async function apply(
  client: pg.ClientBase,
  { version, sql, postgres, triggers }: Migration,
  now: number,
): Promise<void> {
  await client.query(postgres ?? postgresText(sql))
  if (triggers) await client.query(triggers.postgres)
  await client.query(`insert into ${VERSIONS} (version, applied) values ($1, $2)`, [version, now])
}

/**
 * Returns the version of the database's schema, or undefined if it has no tables.
 * @throws SchemaError if it is not for this program
 */
export async function requireUsable(
  client: pg.ClientBase,
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

/** @throws SchemaError unless it has no tables, and its user may make some */
export async function requireEmpty(client: pg.ClientBase): Promise<void> {
  await requireEncoding(client)
  const tables = await tablesIn(client)
  if (tables.length === 0) return await requireRight(client)
  throw new SchemaError(
    `it is not empty (${shown(tables)}), and nothing is written over: make another database, and name that one`,
  )
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

async function recordedVersion(client: pg.ClientBase): Promise<number> {
  const text = `select coalesce(max(version), 0) as version from ${VERSIONS}`
  const { rows } = await client.query<{ version: number }>(text)
  return rows[0]?.version ?? 0
}

async function locked(client: pg.ClientBase, work: () => Promise<unknown>): Promise<void> {
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

async function requireEncoding(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ encoding: string }>(
    "select current_setting('server_encoding') as encoding",
  )
  const encoding = rows[0]?.encoding
  if (encoding !== 'UTF8')
    throw new SchemaError(`its encoding is ${encoding}: make one with the encoding UTF8`)
}

/** Since version 15 of PostgreSQL only the owner of a database may make tables in it. */
async function requireRight(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ right: boolean | null }>(
    "select has_schema_privilege(current_schema(), 'create') as right",
  )
  if (!rows[0]?.right)
    throw new SchemaError(
      'its user may make no tables: let the user own the database (alter database … owner to …)',
    )
}

async function tablesIn(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    'select tablename as name from pg_tables where schemaname = current_schema() order by tablename',
  )
  return rows.map(({ name }) => name)
}

/** Tables of others would be mixed with ours, and may have our names. */
function requireOwn(tables: readonly string[]): void {
  if (tables.includes(VERSIONS)) return
  throw new SchemaError(`it has tables that are not sallyport's (${shown(tables)}): name an empty database`)
}

const shown = (tables: readonly string[]) => tables.slice(0, 3).join(', ') + (tables.length > 3 ? ', …' : '')

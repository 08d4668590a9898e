/** Opens a database of a PostgreSQL server, and brings its schema up to date. */
import { join } from 'node:path'
import { Kysely } from 'kysely'
import pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { SchemaError, StoreError } from '../engine/errors.ts'
import type { Reach } from '../engine/reach.ts'
import type { Migration } from '../engine/versions.ts'
import type { Db, Schema } from '../migrations/schema.ts'
import { Claim } from './claim.ts'
import { PostgresEngineDialect, SEARCH_MS } from './dialect.ts'
import { storeErrorOf } from './errors.ts'
import { guarded } from './guarded.ts'
import { ListReader } from './lists.ts'
import { migratePostgres, requireUsable } from './migrate.ts'
import { clientConfig, cutter, makePool } from './pool.ts'
import { PostgresReach } from './reach.ts'
import { Writer } from './writers.ts'

/** Connections of a process, and those of them for searches and lists. */
const MAX_CONNECTIONS = 10
const MAX_READING = 4

export interface PostgresOptions {
  postgres: PostgresPlace
  /** Folder for the rows of long lists while a client takes them. */
  folder: string
  /** Milliseconds for a search. Absent for SEARCH_MS. */
  searchMs?: number
}

/** The parts of the store that are not its repositories (store.ts). */
export interface OpenPostgres {
  db: Db
  claim: (onTaken: (error: Error) => void) => Promise<() => Promise<void>>
  dataVersion: () => Promise<number>
  reach: Reach
}

/**
 * `id` is that of this process, and `now` in milliseconds since the epoch.
 * @throws SchemaError if the database is not for this program, StoreUnavailableError if it cannot be reached
 */
export async function openPostgres(
  { postgres: place, folder, searchMs = SEARCH_MS }: PostgresOptions,
  { id, now, migrations }: { id: string; now: () => number; migrations: readonly Migration[] },
): Promise<OpenPostgres> {
  await inWords(place, () => connected(place, (client) => migratePostgres(client, now(), migrations)))
  const pool = makePool(place, MAX_CONNECTIONS)
  const reading = makePool(place, MAX_READING)
  const writer = new Writer(id, now)
  const dialect = new PostgresEngineDialect({
    pool,
    reading,
    lists: new ListReader(join(folder, 'sallyport.pg')),
    writer,
    searchMs,
  })
  const cuts = [cutter(pool), cutter(reading)]
  const onAway = () => {
    for (const cut of cuts) cut()
  }
  const reach = new PostgresReach({ place, now, onAway })
  return {
    db: new Kysely<Schema>({ dialect: guarded(dialect, reach) }),
    claim: async (onTaken) => {
      const claim = await Claim.open(place, onTaken)
      return () => claim.release()
    },
    dataVersion: () => reach.hold(() => writer.version(pool)),
    reach,
  }
}

async function connected<T>(place: PostgresPlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(clientConfig(place, { isPatient: true }))
  client.on('error', () => undefined)
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end().catch(() => undefined)
  }
}

/**
 * Returns why a broker could not begin with the database, or undefined; changes nothing.
 */
export async function probePostgres(
  place: PostgresPlace,
  migrations: readonly Migration[],
): Promise<string | undefined> {
  return await inWords(place, () => connected(place, (client) => requireUsable(client, migrations))).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

/** Adds the place to errors, which people read when they start the broker. */
async function inWords<T>(place: PostgresPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { message } = storeErrorOf(error)
    const words = `${placeText({ postgres: place })}: ${message}`
    throw error instanceof SchemaError ? new SchemaError(words) : new StoreError(words)
  }
}

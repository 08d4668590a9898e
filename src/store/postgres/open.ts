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
import { clientConfig, endClient } from './connection.ts'
import { PostgresEngineDialect, SEARCH_MS } from './dialect.ts'
import { storeErrorOf } from './errors.ts'
import { guarded } from './guarded.ts'
import { ListReader } from './lists.ts'
import { migratePostgres, requireUsable } from './migrate.ts'
import { Pool } from './pool.ts'
import { Primary } from './primary.ts'
import { PostgresReach } from './reach.ts'
import { Timelines } from './timelines.ts'

/** Connections of a process, and those of them for searches and lists. */
const MAX_CONNECTIONS = 10
const MAX_READING = 4

export interface PostgresOptions {
  postgres: PostgresPlace
  /** Folder for the rows of long lists while a client takes them, and the timeline that was seen last. */
  folder: string
  /** Milliseconds for a search. Absent for SEARCH_MS. */
  searchMs?: number
}

/** The parts of the store that are not its repositories (store.ts). */
export interface OpenPostgres {
  db: Db
  claim: (onTaken: (error: Error) => void) => Promise<() => Promise<void>>
  reach: Reach
}

/**
 * `now` in milliseconds since the epoch.
 * @throws SchemaError if the database is not for this program, StoreUnavailableError if it cannot be reached
 */
export async function openPostgres(
  { postgres: place, folder, searchMs = SEARCH_MS }: PostgresOptions,
  { now, migrations }: { now: () => number; migrations: readonly Migration[] },
): Promise<OpenPostgres> {
  const primary = new Primary(place, new Timelines(folder))
  await inWords(place, () =>
    connected(place, primary, (client) => migratePostgres(client, now(), migrations)),
  )
  const pool = new Pool(place, primary, MAX_CONNECTIONS)
  const reading = new Pool(place, primary, MAX_READING)
  const dialect = new PostgresEngineDialect({
    pool,
    reading,
    lists: new ListReader(join(folder, 'sallyport.pg')),
    searchMs,
  })
  const onAway = () => {
    pool.cut()
    reading.cut()
  }
  const reach = new PostgresReach({ place, primary, now, onAway })
  return {
    db: new Kysely<Schema>({ dialect: guarded(dialect, reach) }),
    claim: async (onTaken) => {
      const claim = await Claim.open(place, primary, onTaken)
      return () => claim.release()
    },
    reach,
  }
}

async function connected<T>(
  place: PostgresPlace,
  primary: Primary,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  if (primary.isOneOfSeveral) await primary.find()
  const client = new pg.Client(clientConfig(place, primary.current, { isPatient: true }))
  client.on('error', () => undefined)
  try {
    await client.connect()
    await primary.require(client)
    return await work(client)
  } finally {
    await endClient(client)
  }
}

/**
 * Returns why a broker could not begin with the database, or undefined; changes nothing.
 */
export async function probePostgres(
  place: PostgresPlace,
  migrations: readonly Migration[],
): Promise<string | undefined> {
  return await inWords(place, () =>
    connected(place, new Primary(place), (client) => requireUsable(client, migrations)),
  ).then(
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

/** Opens a database of a PostgreSQL server, and brings its schema up to date. */
import { join } from 'node:path'
import { Kysely } from 'kysely'
import pg from 'pg'
import { type PostgresPlace, placeText } from '../../model/database.ts'
import { SchemaError, StoreError } from '../engine/errors.ts'
import type { Reach } from '../engine/reach.ts'
import { requireInUse, STATE } from '../engine/state.ts'
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
  const primary = new Primary(place)
  await inWords(place, () =>
    connected(place, primary, async (client) => {
      await migratePostgres(client, now(), migrations)
      requireInUse(await stateIn(client))
    }),
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

/** Returns the note of a copy, if there is one (engine/state.ts). */
async function stateIn(client: pg.Client): Promise<Uint8Array | undefined> {
  const { rows } = await client.query<{ value: Uint8Array }>('select value from settings where name = $1', [
    STATE,
  ])
  return rows[0]?.value
}

/** Runs the work on a connection of its own to the primary, without a limit of time for statements. */
export async function connected<T>(
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
    connected(place, new Primary(place), async (client) => {
      if (await requireUsable(client, migrations)) requireInUse(await stateIn(client))
    }),
  ).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

/** Adds the place to errors, which people read when they start the broker. */
export async function inWords<T>(place: PostgresPlace, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const { message } = storeErrorOf(error)
    const words = `${placeText({ postgres: place })}: ${message}`
    throw error instanceof SchemaError ? new SchemaError(words) : new StoreError(words)
  }
}

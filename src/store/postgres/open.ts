/** Opens a database of a PostgreSQL server, and brings its schema up to date. */
import { join } from 'node:path'
import { Kysely } from 'kysely'
import type pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import type { Reach } from '../engine/reach.ts'
import { requireInUse, STATE } from '../engine/state.ts'
import type { Migration } from '../engine/versions.ts'
import type { Db, Schema } from '../migrations/schema.ts'
import { Claim } from './claim.ts'
import { PostgresEngineDialect, SEARCH_MS } from './dialect.ts'
import { guarded } from './guarded.ts'
import { ListReader } from './lists.ts'
import { migratePostgres, requireUsable } from './migrate.ts'
import { once } from './once.ts'
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
  /** Called before anything is changed in the database, with its settings, if it has tables. */
  admit?: (settings: KnownSettings | undefined) => Promise<void>
}

/** The settings as they were before the schema was brought up to date. */
export interface KnownSettings {
  get(name: string): Promise<Uint8Array | undefined>
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
  { postgres: place, folder, searchMs = SEARCH_MS, admit }: PostgresOptions,
  { now, migrations }: { now: () => number; migrations: readonly Migration[] },
): Promise<OpenPostgres> {
  const primary = new Primary(place, new Timelines(folder))
  const settings = await once(place, primary, async (client) =>
    (await requireUsable(client, migrations)) ? await usedSettings(client) : undefined,
  )
  // Before the first change: it may be the database of others.
  await admit?.(settings)
  await once(place, primary, (client) => migratePostgres(client, now(), migrations), { isPatient: true })
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

/** Returns why a broker could not begin with the database, or undefined; changes nothing. */
export async function probePostgres(
  place: PostgresPlace,
  migrations: readonly Migration[],
): Promise<string | undefined> {
  return await once(place, new Primary(place), async (client) => {
    if (await requireUsable(client, migrations)) await usedSettings(client)
  }).then(
    () => undefined,
    (error: Error) => error.message,
  )
}

/** Returns the time of the server's clock in milliseconds. @throws StoreError if it cannot be asked */
export async function postgresClock(place: PostgresPlace): Promise<number> {
  return await once(place, new Primary(place), async (client) => {
    const question = 'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now'
    const { rows } = await client.query<{ now: number }>(question)
    return rows[0]!.now
  })
}

/** Returns the settings of a database that has some. @throws StoreError if it is no broker's to use */
async function usedSettings(client: pg.Client): Promise<KnownSettings> {
  const { rows } = await client.query<{ name: string; value: Uint8Array }>('select name, value from settings')
  const values = new Map(rows.map(({ name, value }) => [name, value]))
  requireInUse(values.get(STATE))
  return { get: async (name) => values.get(name) }
}

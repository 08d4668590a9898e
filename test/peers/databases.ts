/**
 * Databases of the run's PostgreSQL server (postgres-setup.ts), each copied from a template that has the schema.
 * The tests of a project with ENGINE=postgres use them where the others have a file of SQLite.
 */
import { createHash, randomBytes } from 'node:crypto'
import pg from 'pg'
import type { PostgresPlace } from '../../src/model/database.ts'
import { OWNER, runSql } from './sql.ts'

/** Environment variables: the server's port, and the engine that a project tests with. */
export const SERVER = 'SALLYPORT_TEST_POSTGRES'
export const ENGINE = 'SALLYPORT_TEST_ENGINE'
export const TEMPLATE = 'sallyport_template'

/** Whether the tests of this project are those on PostgreSQL. */
export const isOnPostgres = (): boolean => process.env[ENGINE] === 'postgres'

export interface TestDatabase {
  place: PostgresPlace
  url: string
  /** Runs statements. Returns the rows of the last one. */
  sql(text: string): Promise<Record<string, unknown>[]>
  drop(): Promise<void>
}

export function placeOf(port: number, database: string): PostgresPlace {
  return { hosts: [{ host: '127.0.0.1', port }], user: OWNER, database }
}

/** Connections of this process for making and dropping databases, by port: each takes as long as a small database. */
const administrators = new Map<number, Promise<pg.Client>>()

function administrator(port: number): Promise<pg.Client> {
  const known = administrators.get(port)
  if (known) return known
  const client = new pg.Client({ host: '127.0.0.1', port, user: OWNER, database: 'postgres' })
  const connected = client.connect().then(() => {
    // Not in its types. The connection keeps no process up.
    ;(client as pg.Client & { unref(): void }).unref()
    return client
  })
  // The server ends before the process does.
  client.on('error', () => administrators.delete(port))
  administrators.set(port, connected)
  return connected
}

/**
 * Makes a database. `of`: what it belongs to, such as a data folder, whose database is there already the second
 * time. `isEmpty`: without the schema.
 */
export async function testDatabase({
  of,
  isEmpty = false,
}: {
  of?: string
  isEmpty?: boolean
} = {}): Promise<TestDatabase> {
  const port = Number(process.env[SERVER])
  if (!port) throw new Error('no PostgreSQL server for tests: apt-get install postgresql-15')
  const name =
    of === undefined ? randomBytes(8).toString('hex') : createHash('sha256').update(of).digest('hex')
  const database = `t_${name.slice(0, 16)}`
  const admin = async (text: string) => (await administrator(port)).query(text)
  const { rowCount } = await admin(`select 1 from pg_database where datname = '${database}'`)
  // A copy of its files, without writing them to the server's log.
  const template = isEmpty ? 'template0' : `${TEMPLATE} strategy file_copy`
  if (rowCount === 0) await admin(`create database ${database} template ${template}`)
  const place = placeOf(port, database)
  return {
    place,
    url: `postgres://${OWNER}@127.0.0.1:${port}/${database}?sslmode=disable`,
    sql: (text) => runSql(port, database, text),
    drop: async () => {
      await admin(`drop database if exists ${database} with (force)`)
    },
  }
}

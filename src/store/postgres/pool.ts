/** Connections to one database: their settings, and the time-outs without which a dead network would hang. */
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import pg from 'pg'
import type { PostgresPlace } from '../../model/database.ts'
import { TYPES } from './values.ts'

/** Time for a connection, or for a free one of the pool. */
const CONNECT_MS = 5000
/** Time for a statement, by the server's clock. */
const STATEMENT_MS = 30_000
/**
 * Time for an answer, by ours: a server that is gone does not end its statements, and one whose standby is gone
 * ends no commit (postgresql.org/docs/15/warm-standby.html, 27.2.8.3).
 */
const ANSWER_MS = STATEMENT_MS + 5000
/** Time in which a transaction may do nothing; the server ends it then, and frees its locks. */
const IDLE_MS = 60_000
const KEEP_ALIVE_MS = 10_000

/** Settings of a session, whatever the server's, the database's and the user's are. */
const SETTINGS = {
  client_encoding: 'UTF8',
  bytea_output: 'hex',
  standard_conforming_strings: 'on',
  // A reported event is on the disk (invariant 2).
  synchronous_commit: 'on',
  default_transaction_isolation: 'read\\ committed',
  statement_timeout: String(STATEMENT_MS),
  idle_in_transaction_session_timeout: String(IDLE_MS),
  // The targets of a user are ten tables: with fewer to choose among, all services were read. Kept queries are planned
  // a few times only.
  join_collapse_limit: '12',
}

/** Returns the settings of a client of `pg`; `isPatient`: without a limit of time for statements. */
export function clientConfig(place: PostgresPlace, { isPatient = false } = {}): pg.ClientConfig {
  const { host, port, user, database, password, tls } = place
  const settings = Object.entries(isPatient ? { ...SETTINGS, statement_timeout: '0' } : SETTINGS)
  return {
    host,
    port,
    user,
    database,
    // A function, so that no object that could be logged has it; and never one of the environment.
    password: () => password?.revealText() ?? '',
    ssl: tls ? tlsOptions(host, tls.ca) : false,
    application_name: 'sallyport',
    options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
    connectionTimeoutMillis: CONNECT_MS,
    ...(!isPatient && { query_timeout: ANSWER_MS }),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: TYPES,
  }
}

function tlsOptions(host: string, ca: string | undefined) {
  return {
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2' as const,
    ...(ca !== undefined && { ca: readFileSync(ca, 'utf8') }),
    // Node would take an address for no name at all.
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
  }
}

/** Makes a pool of at most `max` connections, opened on demand. */
export function makePool(place: PostgresPlace, max: number): pg.Pool {
  const pool = new pg.Pool({ ...clientConfig(place), max })
  // An error of a connection without a listener would end the process. A statement has its own error, and an idle
  // connection leaves the pool.
  const ignore = () => undefined
  pool.on('error', ignore)
  pool.on('connect', (client) => client.on('error', ignore))
  return pool
}

/** Returns a function that closes the sockets of all its connections, so that waiting statements fail at once. */
export function cutter(pool: pg.Pool): () => void {
  const clients = new Set<pg.PoolClient>()
  pool.on('connect', (client) => clients.add(client))
  pool.on('remove', (client) => clients.delete(client))
  return () => {
    for (const client of clients) socketOf(client).destroy()
  }
}

/** Returns the connection's socket, which the types of `pg` leave out. */
function socketOf(client: pg.PoolClient): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}

/** Settings of a connection, and the time-outs without which a dead network would hang. */
import { readFileSync } from 'node:fs'
import type { Duplex } from 'node:stream'
import { checkServerIdentity, type PeerCertificate } from 'node:tls'
import type pg from 'pg'
import type { PostgresHost, PostgresPlace } from '../../model/database.ts'
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
/** Time for the server's part of an end: a dead network brings none. */
export const END_MS = 1000

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

/**
 * Returns the settings of a client of `pg`; `isPatient`: without a limit of time for statements.
 * @throws Error if a file of a certificate cannot be read
 */
export function clientConfig(
  { user, database, password, tls }: PostgresPlace,
  { host, port }: PostgresHost,
  { isPatient = false } = {},
): pg.ClientConfig {
  const settings = Object.entries(isPatient ? { ...SETTINGS, statement_timeout: '0' } : SETTINGS)
  return {
    host,
    port,
    user,
    database,
    // A function, so that no object that could be logged has it; and never one of the environment.
    password: () => password?.revealText() ?? '',
    ssl: tls ? tlsOptions(host, tls) : false,
    application_name: 'sallyport',
    options: settings.map(([name, value]) => `-c ${name}=${value}`).join(' '),
    connectionTimeoutMillis: CONNECT_MS,
    ...(!isPatient && { query_timeout: ANSWER_MS }),
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    types: TYPES,
  }
}

function tlsOptions(host: string, { ca, client }: NonNullable<PostgresPlace['tls']>) {
  return {
    rejectUnauthorized: true,
    minVersion: 'TLSv1.2' as const,
    ...(ca !== undefined && { ca: readFileSync(ca, 'utf8') }),
    ...(client && {
      cert: readFileSync(client.certificate, 'utf8'),
      key: readFileSync(client.key, 'utf8'),
    }),
    // Node would take an address for no name at all.
    checkServerIdentity: (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate),
  }
}

/** Ends a connection, in order if the server still answers. */
export async function endClient(client: pg.Client): Promise<void> {
  const timer = setTimeout(() => socketOf(client).destroy(), END_MS)
  await client.end().catch(() => undefined)
  clearTimeout(timer)
}

/** Returns the connection's socket, which the types of `pg` leave out. */
export function socketOf(client: pg.ClientBase): Duplex {
  return (client as unknown as { connection: { stream: Duplex } }).connection.stream
}

/** Where the store keeps its data: a file of SQLite, or a database of a PostgreSQL server. */
import type { Secret } from './secret.ts'

export interface PostgresPlace {
  host: string
  port: number
  user: string
  password?: Secret
  /** Name of the database. */
  database: string
  /**
   * Absent without TLS. With it the server's certificate must be for `host`, by an authority of the file `ca`
   * (PEM), or, without a file, by one that Node trusts.
   */
  tls?: { ca?: string }
}

export type DatabasePlace = { file: string } | { postgres: PostgresPlace }

/** Returns the place for messages, without the password. */
export function placeText(place: DatabasePlace): string {
  if ('file' in place) return place.file
  const { host, port, user, database } = place.postgres
  const at = host.includes(':') ? `[${host}]` : host
  return `postgres://${user}@${at}:${port}/${database}`
}

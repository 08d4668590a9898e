/** Where the store keeps its data: a file of SQLite, or a database of a PostgreSQL server. */
import type { Secret } from './secret.ts'

export interface PostgresHost {
  /** A name or an address. */
  host: string
  port: number
}

export interface PostgresPlace {
  /** At least one. With several, one of them is the primary, and the others are its standbys. */
  hosts: readonly PostgresHost[]
  user: string
  password?: Secret
  /** Name of the database. */
  database: string
  /**
   * Absent without TLS. With it a server's certificate must be for its host, by an authority of the file `ca`
   * (PEM), or, without a file, by one that Node trusts. `client`: files (PEM) of the certificate that this side
   * shows, and of its key. All are read again for each connection.
   */
  tls?: { ca?: string; client?: { certificate: string; key: string } }
}

export type DatabasePlace = { file: string } | { postgres: PostgresPlace }

/** Returns the place for messages, without the password. */
export function placeText(place: DatabasePlace): string {
  if ('file' in place) return place.file
  const { hosts, user, database } = place.postgres
  return `postgres://${user}@${hosts.map(hostText).join(',')}/${database}`
}

/** Returns `HOST:PORT`. */
export function hostText({ host, port }: PostgresHost): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

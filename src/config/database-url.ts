/** The database's URL. Faults are told without its text: it may hold a password. */
import type { DatabasePlace, PostgresPlace } from '../model/database.ts'
import { Secret } from '../model/secret.ts'

const DEFAULT_PORT = 5432
const PARAMETERS: readonly string[] = ['sslmode', 'sslrootcert']

export class DatabaseUrlError extends Error {
  override readonly name = 'DatabaseUrlError'
}

/**
 * Reads `sqlite:FILE` or `postgres://USER:PASSWORD@HOST:PORT/NAME?sslmode=MODE&sslrootcert=FILE`; `path` makes a
 * file's path absolute. Without `sslmode` the server must prove who it is.
 * @throws DatabaseUrlError
 */
export function readDatabaseUrl(url: string, path: (file: string) => string): DatabasePlace {
  if (url.startsWith('sqlite:')) return { file: path(url.slice('sqlite:'.length)) }
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.hash !== '')
    throw new DatabaseUrlError('expected one host: postgres://USER:PASSWORD@HOST:PORT/NAME')
  const { hostname, port, searchParams } = parsed
  const [user, password, database] = [parsed.username, parsed.password, parsed.pathname.slice(1)].map(decoded)
  if (hostname === '' || hostname.includes(',') || hostname.includes('%'))
    throw new DatabaseUrlError('expected the name or address of one host')
  if (!user)
    throw new DatabaseUrlError('expected the name of a user before the host (postgres://USER@HOST/NAME)')
  if (!database || database.includes('/'))
    throw new DatabaseUrlError('expected the name of a database after the host (postgres://USER@HOST/NAME)')
  for (const name of new Set(searchParams.keys())) {
    if (!PARAMETERS.includes(name) || searchParams.getAll(name).length > 1)
      throw new DatabaseUrlError(`expected only the parameters ${PARAMETERS.join(' and ')}, each once`)
  }
  const place: PostgresPlace = {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? DEFAULT_PORT : Number(port),
    user,
    ...(password && { password: Secret.of(password) }),
    database,
    ...tlsOf(searchParams.get('sslmode'), searchParams.get('sslrootcert'), path),
  }
  return { postgres: place }
}

function tlsOf(
  mode: string | null,
  ca: string | null,
  path: (file: string) => string,
): Pick<PostgresPlace, 'tls'> {
  if (mode === 'disable') {
    if (ca !== null) throw new DatabaseUrlError('sslrootcert has no meaning with sslmode=disable')
    return {}
  }
  // Others of libpq's modes take any server for the right one.
  if (mode !== null && mode !== 'verify-full')
    throw new DatabaseUrlError(
      'expected sslmode=verify-full, or disable on a path that nobody else can reach',
    )
  return { tls: ca === null || ca === '' ? {} : { ca: path(ca) } }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new DatabaseUrlError('expected two hexadecimal digits after each %')
  }
}

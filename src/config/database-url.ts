/** The database's URL. Faults are told without its text: it may hold a password. */
import type { DatabasePlace, PostgresHost, PostgresPlace } from '../model/database.ts'
import { Secret } from '../model/secret.ts'

const DEFAULT_PORT = 5432
const PARAMETERS: readonly string[] = ['sslmode', 'sslrootcert', 'sslcert', 'sslkey']
const MAX_HOSTS = 8
/** The part before the hosts, the hosts, and the rest. */
const PARTS = /^(postgres(?:ql)?:\/\/(?:[^/?#]*@)?)([^/?#]*)(.*)$/is

export class DatabaseUrlError extends Error {
  override readonly name = 'DatabaseUrlError'
}

/**
 * Reads `sqlite:FILE` or `postgres://USER:PASSWORD@HOST:PORT/NAME?PARAMETERS`, the latter with one host or several,
 * separated by commas; `path` makes a file's path absolute. Without `sslmode` the server must prove who it is.
 * @throws DatabaseUrlError
 */
export function readDatabaseUrl(url: string, path: (file: string) => string): DatabasePlace {
  if (url.startsWith('sqlite:')) return { file: path(url.slice('sqlite:'.length)) }
  const [, before = '', hosts = '', rest = ''] = PARTS.exec(url) ?? []
  const all = hosts.split(',')
  if (all.length > MAX_HOSTS) throw new DatabaseUrlError(`expected at most ${MAX_HOSTS} hosts`)
  const parsed = all.map((host) => parsedUrl(`${before}${host}${rest}`))
  const [first] = parsed as [URL]
  const { searchParams } = first
  const [user, password, database] = [first.username, first.password, first.pathname.slice(1)].map(decoded)
  if (!user)
    throw new DatabaseUrlError('expected the name of a user before the host (postgres://USER@HOST/NAME)')
  if (!database || database.includes('/'))
    throw new DatabaseUrlError('expected the name of a database after the host (postgres://USER@HOST/NAME)')
  for (const name of new Set(searchParams.keys())) {
    if (!PARAMETERS.includes(name) || searchParams.getAll(name).length > 1)
      throw new DatabaseUrlError(`expected only the parameters ${PARAMETERS.join(', ')}, each once`)
  }
  const place: PostgresPlace = {
    hosts: parsed.map(hostOf),
    user,
    ...(password && { password: Secret.of(password) }),
    database,
    ...tlsOf(searchParams, path),
  }
  return { postgres: place }
}

function parsedUrl(url: string): URL {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.hash !== '')
    throw new DatabaseUrlError(
      'expected postgres://USER:PASSWORD@HOST:PORT/NAME, or several HOST:PORT with commas',
    )
  if (parsed.hostname === '' || parsed.hostname.includes('%'))
    throw new DatabaseUrlError('expected the name or address of a host')
  return parsed
}

function hostOf({ hostname, port }: URL): PostgresHost {
  return {
    host: hostname.replace(/^\[(.*)\]$/, '$1'),
    port: port === '' ? DEFAULT_PORT : Number(port),
  }
}

function tlsOf(parameters: URLSearchParams, path: (file: string) => string): Pick<PostgresPlace, 'tls'> {
  const [mode, ca, certificate, key] = PARAMETERS.map((name) => parameters.get(name) || undefined)
  if (mode === 'disable') {
    if (ca !== undefined || certificate !== undefined || key !== undefined)
      throw new DatabaseUrlError('files of certificates have no meaning with sslmode=disable')
    return {}
  }
  // Others of libpq's modes take any server for the right one.
  if (mode !== undefined && mode !== 'verify-full')
    throw new DatabaseUrlError(
      'expected sslmode=verify-full, or disable on a path that nobody else can reach',
    )
  if ((certificate === undefined) !== (key === undefined))
    throw new DatabaseUrlError('expected sslcert and sslkey, or neither')
  return {
    tls: {
      ...(ca !== undefined && { ca: path(ca) }),
      ...(certificate !== undefined &&
        key !== undefined && { client: { certificate: path(certificate), key: path(key) } }),
    },
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new DatabaseUrlError('expected two hexadecimal digits after each %')
  }
}

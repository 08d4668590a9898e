/** Versions of the API, all served by the same code. */
import type { FastifyRequest } from 'fastify'

export const OLDEST_VERSION = '2.3'
export const NEWEST_VERSION = '3.12'

const VERSIONED = /^\/api\/v(\d{1,3})\.(\d{1,3})(?=[/?]|$)/

/** Removes a served version from the URL; with any other version the URL stays and matches no route. */
export function withoutVersion(url: string): string {
  const match = VERSIONED.exec(url)
  if (!match || !isServed(match[1] ?? '', match[2] ?? '')) return url
  return `/api${url.slice(match[0].length)}`
}

/** Returns the prefix for links in an answer: `/api/v3.12`, or `/api` for a request without a version. */
export function apiBase(request: FastifyRequest): string {
  return VERSIONED.exec(request.originalUrl)?.[0] ?? '/api'
}

/** From 2.3 to 3.12, compared as numbers; each has only one spelling. */
function isServed(major: string, minor: string): boolean {
  if (`${Number(major)}.${Number(minor)}` !== `${major}.${minor}`) return false
  return (
    rank(`${major}.${minor}`) >= rank(OLDEST_VERSION) && rank(`${major}.${minor}`) <= rank(NEWEST_VERSION)
  )
}

function rank(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major * 1000 + minor
}

/** Look-ups in the table of routes. */
import type { ProfileRights } from '../../model/profile-rights.ts'
import { reaches } from '../../model/profiles.ts'
import { type Need, ROUTES } from './routes.ts'

/**
 * Returns the need of a route; HEAD is GET without the body (RFC 9110 9.3.2).
 * @throws Error for a route that is not in the table: it must not exist
 */
export function needOf(method: string, url: string): Need {
  const route = `${method === 'HEAD' ? 'GET' : method} ${url.replace(/^\/api(?=\/)/, '')}`
  const need = Object.hasOwn(ROUTES, route) ? ROUTES[route] : undefined
  if (need === undefined)
    throw new Error(`the route "${route}" is missing in the table of rights (src/api/access/routes.ts)`)
  return need
}

/** Whether a signed-in caller with these rights may use the route. */
export function satisfies(rights: ProfileRights, need: Need): boolean {
  if (need === 'scim') return false
  return need === 'public' || need === 'signed_in' || reaches(rights[need.feature], need.level)
}

/** Returns the right that a route needs besides a sign-in, or undefined if none. */
export function rightFor(method: string, url: string): Exclude<Need, string> | undefined {
  const need = needOf(method, url)
  return typeof need === 'string' ? undefined : need
}

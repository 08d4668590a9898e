/** Look-ups in the table of routes. */
import type { ProfileRights } from '../../model/profile-rights.ts'
import { reaches } from '../../model/profiles.ts'
import { type Need, PAGES, type PageNeed, ROUTES } from './routes.ts'

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

/** Returns the need of a page, as `needOf`. */
export function pageNeedOf(method: string, url: string): PageNeed {
  const route = `${method === 'HEAD' ? 'GET' : method} ${url}`
  const need = Object.hasOwn(PAGES, route) ? PAGES[route] : undefined
  if (need === undefined)
    throw new Error(`the page "${route}" is missing in the table of pages (src/api/access/routes.ts)`)
  return need
}

/** Whether the URL is one of a page, beside the API. */
export function isPage(url: string): boolean {
  return !/^\/api(?![^/?])/.test(url)
}

/** Whether a signed-in caller with these rights may use the route. */
export function satisfies(rights: ProfileRights, need: Need): boolean {
  return need === 'public' || need === 'signed_in' || reaches(rights[need.feature], need.level)
}

/** Returns the right that a route needs besides a sign-in, or undefined if none. */
export function rightFor(method: string, url: string): Exclude<Need, string> | undefined {
  const need = needOf(method, url)
  return typeof need === 'string' ? undefined : need
}

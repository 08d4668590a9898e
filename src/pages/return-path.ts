/** The page to which a browser goes after its sign-in: one of this broker, never an address elsewhere. */

/** Where it goes without a wish. */
export const HOME = '/account'
/** Pages that a sign-in may lead to, with all below them. */
const PREFIXES = [HOME, '/s'] as const
const MAX_PATH = 512
/** No `\`, which browsers read as `/`, and nothing that they would leave out. */
const PLAIN = /^\/[A-Za-z0-9/?&=._~%-]*$/
const HERE = 'https://here.invalid'

/** Returns the path if a sign-in may lead to it, else the home page. */
export function returnPath(text: unknown): string {
  if (typeof text !== 'string' || text.length > MAX_PATH || !PLAIN.test(text) || text.startsWith('//'))
    return HOME
  // As a browser reads it: `/account/../elsewhere` is another page.
  const { origin, pathname, search } = new URL(text, HERE)
  const isKnown = PREFIXES.some((prefix) => pathname === prefix || pathname.startsWith(`${prefix}/`))
  return origin === HERE && isKnown ? pathname + search : HOME
}

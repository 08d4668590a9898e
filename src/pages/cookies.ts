/** Cookies of the pages: `__Host-`, so that neither another host nor a page without TLS can set them (RFC 6265bis 4.1.3.2). */
import type { FastifyReply, FastifyRequest } from 'fastify'

const NAMES = {
  /** Secret of the browser that its forms are bound to. */
  form: '__Host-sallyport_form',
  language: '__Host-sallyport_language',
  /** Way of the last sign-in, without a name. */
  way: '__Host-sallyport_way',
} as const
type PageCookie = keyof typeof NAMES

const YEAR_S = 365 * 24 * 3600

export function cookieOf({ cookies }: FastifyRequest, name: PageCookie): string | undefined {
  return cookies[NAMES[name]]
}

/** Sets a cookie that no script sees, for a year or until the browser closes. The rest of the request sees it, too. */
export function setCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  name: PageCookie,
  { value, isKept }: { value: string; isKept: boolean },
): void {
  request.cookies[NAMES[name]] = value
  const attributes = { path: '/', secure: true, httpOnly: true, sameSite: 'lax' } as const
  reply.setCookie(NAMES[name], value, { ...attributes, ...(isKept && { maxAge: YEAR_S }) })
}

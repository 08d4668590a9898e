/** Ways to sign in beside the password, as the sign-in page offers them: the kinds of ways, and the choice of the last time. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Context } from '../api/access/context.ts'
import { cookieOf, setCookie } from './cookies.ts'
import type { Messages } from './languages/en.ts'

/** A link on the sign-in page. */
export interface Way {
  /** Names it in the browser's cookie: `[a-z0-9_/.-]`, such as `oidc/corp`. */
  id: string
  /** Path of this broker; the page adds `return`. */
  path: string
  label: (messages: Messages) => string
}

/** Returns the ways of one kind that are configured now. */
export type WaysOfKind = (context: Context) => Promise<readonly Way[]>

export interface PageContext extends Context {
  ways: readonly WaysOfKind[]
}

export const PASSWORD_WAY = 'password'
const ID = /^[a-z0-9_/.-]{1,128}$/i

export async function waysOf(context: PageContext): Promise<Way[]> {
  return (await Promise.all(context.ways.map((kind) => kind(context)))).flat()
}

/** Returns the id of the way of the last sign-in with this browser. */
export function lastWay(request: FastifyRequest): string | undefined {
  return cookieOf(request, 'way')
}

/** Notes the way for the next sign-in with this browser. */
export function keepWay(request: FastifyRequest, reply: FastifyReply, value: string): void {
  if (ID.test(value) && value !== lastWay(request)) setCookie(request, reply, 'way', { value, isKept: true })
}

export const ticketWays: WaysOfKind = async ({ deps }) =>
  (await deps.shownTickets.areTaken())
    ? [{ id: 'negotiate', path: '/signin/negotiate', label: ({ signIn }) => signIn.negotiate }]
    : []

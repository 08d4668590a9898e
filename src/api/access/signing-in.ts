/** Sign-ins over HTTPS by password, rounds or ticket, for the API and its pages: how they are judged, and how they end. */
import { Buffer } from 'node:buffer'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { judgesOf, serverFields } from '../../gate/sign-in-fields.ts'
import { LOCKOUT_LIMITS } from '../../identity/lockout.ts'
import type { ShownOutcome } from '../../identity/shown-tickets.ts'
import type { Outcome, Proved } from '../../identity/sign-in.ts'
import { Secret } from '../../model/secret.ts'
import type { ErrorCode } from '../http/errors.ts'
import { SESSION_COOKIE } from './authenticate.ts'
import type { Context } from './context.ts'
import { addressOf, record } from './events.ts'

/** Verdict on a sign-in, for `begin` or `refuse`. */
export interface Judged extends ShownOutcome {
  /** Name of the method in events. */
  method: string
}

export type Refused = Exclude<Outcome, { result: 'accepted' | 'challenge' }>

const PROTOCOL = 'HTTPS'
const NEGOTIATE = /^negotiate +([a-z0-9+/]+={0,2})$/i
const COOKIE = { path: '/', secure: true, httpOnly: true, sameSite: 'lax' } as const

/** Judges a password. `owner`: see `SignIn`. */
export async function byPassword(
  { deps }: Context,
  request: FastifyRequest,
  { user, password, owner }: { user: string; password: string; owner: string },
): Promise<ShownOutcome> {
  const proof = { method: 'password', password } as const
  const source = addressOf(request)
  const outcome = await deps.identities.authenticate({ user, login: user, source, owner, proof })
  return { name: user, outcome }
}

/** Begins with a browser, for a program whose person signs in there; `method_not_allowed` for all other names. */
export async function byBrowser(
  { deps }: Context,
  request: FastifyRequest,
  { user, owner }: { user: string; owner: string },
): Promise<ShownOutcome> {
  const source = addressOf(request)
  const proof = { method: 'browser' } as const
  const begun = { user, login: user, source, owner, waitsBy: PROTOCOL, proof }
  return { name: user, outcome: await deps.identities.authenticate(begun) }
}

/** Judges the answers to a round: of a sign-in, or of a second factor that a request needed afterwards. */
export async function byAnswers(
  { deps }: Context,
  { challenge, answers, owner }: { challenge: string; answers: readonly string[]; owner: string },
): Promise<ShownOutcome & Partial<Pick<Judged, 'method'>>> {
  const texts = answers.map((text) => Secret.of(text))
  const answered = await deps.identities.answer(challenge, owner, texts)
  answered.password?.wipe()
  const { outcome, request } = answered
  if (!request) return { outcome }
  const { method } = request.proof
  return { name: request.user, outcome, ...(method === 'second_factor' && { method }) }
}

/** Judges the ticket in the header; returns undefined if there is none. */
export async function byTicket(
  { deps }: Context,
  request: FastifyRequest,
  owner: string,
): Promise<ShownOutcome | undefined> {
  const [, text] = NEGOTIATE.exec(request.headers.authorization ?? '') ?? []
  if (text === undefined) return undefined
  return await deps.shownTickets.negotiate(Buffer.from(text, 'base64'), { source: addressOf(request), owner })
}

/** Signs the user in: with a new cookie, in place of an earlier sign-in of the client. */
export async function begin(
  { deps, signIns }: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  { proved, method, answer }: { proved: Proved; method: string; answer: Uint8Array | undefined },
): Promise<void> {
  const { user, hasFactor, isOffline, providerSession, recoveryCodesLeft, isFactorRemembered } = proved
  const earlier = request.cookies[SESSION_COOKIE]
  if (earlier !== undefined) await signIns.end(earlier)
  const { userName, profile } = user
  // One after the other: a success that is in the audit log was one.
  const token = await signIns.begin(user, deps.clock(), {
    ...(hasFactor && { hasFactor }),
    client: { address: addressOf(request), method, agent: request.headers['user-agent'] ?? '' },
    ...(providerSession !== undefined && { providerSession }),
  })
  try {
    const same = { protocol: PROTOCOL, user: userName }
    const fields = { ...same, method, ...judgesOf(proved), profile }
    await record(deps.audit, request, 'auth.success', fields)
    if (isOffline) await record(deps.audit, request, 'auth.offline', { ...same, ...judgesOf(proved) })
    if (recoveryCodesLeft !== undefined)
      await record(deps.audit, request, 'factor.recovery', { ...same, count: recoveryCodesLeft })
    if (isFactorRemembered) await record(deps.audit, request, 'factor.remembered', same)
  } catch (error) {
    // The token was not answered.
    await signIns.end(token).catch(() => undefined)
    throw error
  }
  reply.setCookie(SESSION_COOKIE, token, COOKIE)
  if (answer) reply.header('www-authenticate', `Negotiate ${Buffer.from(answer).toString('base64')}`)
}

/** Removes the cookie of a sign-in that has ended. */
export function clearCookie(request: FastifyRequest, reply: FastifyReply): void {
  delete request.cookies[SESSION_COOKIE]
  reply.clearCookie(SESSION_COOKIE, COOKIE)
}

/**
 * Ends the sign-in of the request's cookie, and removes the cookie. Returns the id of the session at a provider that it
 * rested on, if it did.
 */
export async function end(
  { deps, signIns }: Context,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string | undefined> {
  const token = request.cookies[SESSION_COOKIE]
  clearCookie(request, reply)
  if (token === undefined) return undefined
  const signIn = await signIns.use(token, deps.clock())
  await signIns.end(token)
  return signIn?.providerSession
}

/** Records that what was answered before a round counts as a failure, if it does. */
export async function recordFailure(
  { deps }: Context,
  request: FastifyRequest,
  { outcome, name: user, method }: Judged,
): Promise<void> {
  if (outcome.result !== 'challenge' || outcome.failure === undefined) return
  const fields = { method, protocol: PROTOCOL, ...(user !== undefined && { user }) }
  await record(deps.audit, request, 'auth.failure', { ...fields, reason: outcome.failure })
}

/** Records a refusal, whose reason is only audited. Returns the one code that the client sees. */
export async function refuse(
  { deps }: Context,
  request: FastifyRequest,
  { outcome, name, detail, method }: Judged & { outcome: Refused },
): Promise<ErrorCode> {
  const fields = { method, protocol: PROTOCOL, ...(name !== undefined && { user: name }) }
  if (outcome.result === 'unavailable') {
    const { server, reason } = outcome
    await record(deps.audit, request, 'auth.unavailable', { ...fields, ...serverFields([server]), reason })
    return outcome.isHidden ? 'invalid_credentials' : 'sign_in_unavailable'
  }
  const reason = outcome.result === 'rejected' ? outcome.reason : 'method_not_allowed'
  await record(deps.audit, request, 'auth.failure', { ...fields, reason: detail ?? reason })
  if (outcome.result === 'rejected' && outcome.locks) {
    const duration = LOCKOUT_LIMITS.lockMs
    await record(deps.audit, request, 'auth.locked', { ...fields, reason, duration })
  }
  return reason === 'busy' ? 'busy' : 'invalid_credentials'
}

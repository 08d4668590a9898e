/** `/session`: signing in and out by cookie. */
import { Buffer } from 'node:buffer'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { serverFields } from '../../gate/sign-in-fields.ts'
import { LOCKOUT_LIMITS } from '../../identity/lockout.ts'
import { MAX_PASSWORD_BYTES } from '../../identity/password.ts'
import type { ShownOutcome } from '../../identity/shown-tickets.ts'
import type { Proved } from '../../identity/sign-in.ts'
import { FEATURES, LEVELS } from '../../model/profile-rights.ts'
import { Secret } from '../../model/secret.ts'
import { SESSION_COOKIE } from '../access/authenticate.ts'
import { type Caller, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { addressOf, record } from '../access/events.ts'
import { rightsOf } from '../access/profile-rights.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, challengeError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, oneOf, titled } from '../schema/fields.ts'

const Credentials = titled(
  'Credentials',
  exact({
    user: Type.Optional(Type.String({ minLength: 1, maxLength: 512 })),
    password: Type.Optional(Type.String({ maxLength: MAX_PASSWORD_BYTES })),
    challenge: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'id of a challenge; goes with answers, without user and password',
      }),
    ),
    answers: Type.Optional(Type.Array(Type.String({ maxLength: MAX_PASSWORD_BYTES }), { maxItems: 8 })),
  }),
)
const View = titled(
  'SignedIn',
  exact({
    user: Type.Union([Type.String(), Type.Null()], { description: 'null: an API key without X-Auth-User' }),
    profile: Type.String(),
    rights: Type.Object(Object.fromEntries(FEATURES.map((feature) => [feature, oneOf(LEVELS, 'level')]))),
  }),
)
const BY_PASSWORD = { method: 'api_password', protocol: 'HTTPS' }
const BY_FACTOR = { method: 'second_factor', protocol: 'HTTPS' }
const BY_TICKET = { method: 'negotiate', protocol: 'HTTPS' }
const NEGOTIATE = /^negotiate +([a-z0-9+/]+={0,2})$/i
const tags = ['Session']

const show = (caller: Pick<Caller, 'user' | 'profile' | 'rights'>): Static<typeof View> => ({
  user: caller.user?.userName ?? null,
  profile: caller.profile,
  rights: { ...caller.rights },
})

export function registerSignIn(app: Api, { deps, signIns }: Context): void {
  app.post(
    '/session',
    {
      schema: {
        tags,
        summary: 'Sign in',
        description:
          'Sets the cookie `sallyport_session`; each sign-in makes a new one. Where a further round is due, the answer is 401 second_factor_required with a challenge; its answers come with the next request: {"challenge": ID, "answers": […]}. With the body {} and the header `Authorization: Negotiate TOKEN`, a Kerberos ticket signs in.',
        body: Credentials,
        response: { 200: View, ...errorResponses(400, 401, 403, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const proof = await proven(request, reply, request.body)
      const { user, by, hasFactor, recoveryCodesLeft, isFactorRemembered, answer, method } = proof
      await endOwn(request)
      const { userName, profile } = user
      // One after the other: a success that is in the audit log was one.
      const token = await signIns.begin(user, deps.clock(), hasFactor)
      try {
        const fields = { ...method, ...(by && serverFields(by)), user: userName, profile }
        await record(deps.audit, request, 'auth.success', fields)
        const same = { protocol: 'HTTPS', user: userName }
        if (recoveryCodesLeft !== undefined)
          await record(deps.audit, request, 'factor.recovery', { ...same, count: recoveryCodesLeft })
        if (isFactorRemembered) await record(deps.audit, request, 'factor.remembered', same)
      } catch (error) {
        // The token was not answered.
        await signIns.end(token).catch(() => undefined)
        throw error
      }
      reply.setCookie(SESSION_COOKIE, token, { path: '/', secure: true, httpOnly: true, sameSite: 'lax' })
      if (answer) reply.header('www-authenticate', `Negotiate ${Buffer.from(answer).toString('base64')}`)
      return show({ user, profile: user.profile, rights: await rightsOf(deps.store, user.profile) })
    },
  )

  app.get(
    '/session',
    { schema: { tags, summary: 'Who is signed in', response: { 200: View, ...errorResponses(401, 403) } } },
    async (request) => show(callerOf(request)),
  )

  app.delete(
    '/session',
    { schema: { tags, summary: 'Sign out', response: { 204: Type.Null(), ...errorResponses(401, 403) } } },
    async (request, reply) => {
      await endOwn(request)
      reply.clearCookie(SESSION_COOKIE, { path: '/', secure: true, httpOnly: true, sameSite: 'lax' })
      return reply.code(204).send(null)
    },
  )

  /**
   * Returns the user if the password, or the answer, is correct. The reason of a refusal, which is recorded, is only
   * audited.
   */
  async function proven(
    request: FastifyRequest,
    reply: Pick<FastifyReply, 'header'>,
    body: Static<typeof Credentials>,
  ): Promise<Proved & { answer: Uint8Array | undefined; method: typeof BY_PASSWORD }> {
    const shown = Object.keys(body).length === 0 ? await byTicket(request, reply) : undefined
    const { name, outcome, detail, answer, method } = shown
      ? { ...shown, method: BY_TICKET }
      : await judged(request, body)
    if (outcome.result === 'accepted') return { ...outcome, answer, method }
    if (outcome.result === 'challenge') throw challengeError(outcome)
    const fields = { ...method, ...(name !== undefined && { user: name }) }
    if (outcome.result === 'unavailable') {
      const { server, reason } = outcome
      await record(deps.audit, request, 'auth.unavailable', { ...fields, ...serverFields([server]), reason })
      throw new ApiError(outcome.isHidden ? 'invalid_credentials' : 'sign_in_unavailable')
    }
    const reason = outcome.result === 'rejected' ? outcome.reason : 'method_not_allowed'
    await record(deps.audit, request, 'auth.failure', { ...fields, reason: detail ?? reason })
    if (outcome.result === 'rejected' && outcome.locks) {
      const duration = LOCKOUT_LIMITS.lockMs
      await record(deps.audit, request, 'auth.locked', { ...fields, reason, duration })
    }
    throw new ApiError(reason === 'busy' ? 'busy' : 'invalid_credentials')
  }

  async function judged(
    request: FastifyRequest,
    { user, password, challenge, answers }: Static<typeof Credentials>,
  ): Promise<ShownOutcome & { method: typeof BY_PASSWORD }> {
    const source = addressOf(request)
    const owner = `HTTPS ${source}`
    if (challenge !== undefined && answers && user === undefined && password === undefined) {
      const texts = answers.map((text) => Secret.of(text))
      const answered = await deps.identities.answer(challenge, owner, texts)
      answered.password?.wipe()
      const { outcome, request: begun } = answered
      if (!begun) return { outcome, method: BY_PASSWORD }
      const method = begun.proof.method === BY_FACTOR.method ? BY_FACTOR : BY_PASSWORD
      return { name: begun.user, outcome, method }
    }
    if (user === undefined || password === undefined || challenge !== undefined || answers) {
      throw fieldError('invalid_field', 'user', 'expected user and password, or challenge and answers')
    }
    const proof = { method: 'password', password } as const
    const outcome = await deps.identities.authenticate({ user, login: user, source, owner, proof })
    return { name: user, outcome, method: BY_PASSWORD }
  }

  /** Judges a ticket in the header; asks for one where there is none and it would be taken. */
  async function byTicket(
    request: FastifyRequest,
    reply: Pick<FastifyReply, 'header'>,
  ): Promise<ShownOutcome | undefined> {
    const [, text] = NEGOTIATE.exec(request.headers.authorization ?? '') ?? []
    if (text === undefined) {
      if (!(await deps.shownTickets.areTaken())) return undefined
      reply.header('www-authenticate', 'Negotiate')
      throw new ApiError('authentication_required')
    }
    const source = addressOf(request)
    return await deps.shownTickets.negotiate(Buffer.from(text, 'base64'), {
      source,
      owner: `HTTPS ${source}`,
    })
  }

  async function endOwn(request: FastifyRequest): Promise<void> {
    const token = request.cookies[SESSION_COOKIE]
    if (token !== undefined) await signIns.end(token)
  }
}

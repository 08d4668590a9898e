/** `/session`: signing in and out by cookie. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { serverFields } from '../../gate/sign-in-fields.ts'
import { LOCKOUT_LIMITS } from '../../identity/lockout.ts'
import { MAX_PASSWORD_BYTES } from '../../identity/password.ts'
import type { Outcome, Proved } from '../../identity/sign-in.ts'
import { FEATURES, LEVELS } from '../../model/profile-rights.ts'
import { Secret } from '../../model/secret.ts'
import { rightsOf, SESSION_COOKIE } from '../access/authenticate.ts'
import { type Caller, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { addressOf, record } from '../access/events.ts'
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
          'Sets the cookie `sallyport_session`; each sign-in makes a new one. Where a further round is due, the answer is 401 second_factor_required with a challenge; its answers come with the next request: {"challenge": ID, "answers": […]}.',
        body: Credentials,
        response: { 200: View, ...errorResponses(400, 401, 403, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const { user, by, recoveryCodesLeft } = await proven(request, request.body)
      await endOwn(request)
      const { userName, profile } = user
      // One after the other: a success that is in the audit log was one.
      const token = await signIns.begin(user, deps.clock())
      try {
        const fields = { ...BY_PASSWORD, ...(by && serverFields(by)), user: userName, profile }
        await record(deps.audit, request, 'auth.success', fields)
        if (recoveryCodesLeft !== undefined) {
          const used = { protocol: 'HTTPS', user: userName, count: recoveryCodesLeft }
          await record(deps.audit, request, 'factor.recovery', used)
        }
      } catch (error) {
        // The token was not answered.
        await signIns.end(token).catch(() => undefined)
        throw error
      }
      reply.setCookie(SESSION_COOKIE, token, { path: '/', secure: true, httpOnly: true, sameSite: 'lax' })
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
  async function proven(request: FastifyRequest, body: Static<typeof Credentials>): Promise<Proved> {
    const { name, outcome } = await judged(request, body)
    if (outcome.result === 'accepted') return outcome
    if (outcome.result === 'challenge') {
      const { challenge: id, message } = outcome
      throw challengeError({
        id,
        message,
        prompts: outcome.prompts.map(({ text, echo }) => ({ text, echo })),
      })
    }
    const fields = { ...BY_PASSWORD, ...(name !== undefined && { user: name }) }
    if (outcome.result === 'unavailable') {
      const { server, reason } = outcome
      await record(deps.audit, request, 'auth.unavailable', { ...fields, ...serverFields([server]), reason })
      throw new ApiError(outcome.isHidden ? 'invalid_credentials' : 'sign_in_unavailable')
    }
    const reason = outcome.result === 'rejected' ? outcome.reason : 'method_not_allowed'
    await record(deps.audit, request, 'auth.failure', { ...fields, reason })
    if (outcome.result === 'rejected' && outcome.locks) {
      const duration = LOCKOUT_LIMITS.lockMs
      await record(deps.audit, request, 'auth.locked', { ...fields, reason, duration })
    }
    throw new ApiError(reason === 'busy' ? 'busy' : 'invalid_credentials')
  }

  async function judged(
    request: FastifyRequest,
    { user, password, challenge, answers }: Static<typeof Credentials>,
  ): Promise<{ name: string | undefined; outcome: Outcome }> {
    const source = addressOf(request)
    const owner = `HTTPS ${source}`
    if (challenge !== undefined && answers && user === undefined && password === undefined) {
      const texts = answers.map((text) => Secret.of(text))
      const answered = await deps.identities.answer(challenge, owner, texts)
      answered.password?.wipe()
      return { name: answered.request?.user, outcome: answered.outcome }
    }
    if (user === undefined || password === undefined || challenge !== undefined || answers) {
      throw fieldError('invalid_field', 'user', 'expected user and password, or challenge and answers')
    }
    const proof = { method: 'password', password } as const
    const outcome = await deps.identities.authenticate({ user, login: user, source, owner, proof })
    return { name: user, outcome }
  }

  async function endOwn(request: FastifyRequest): Promise<void> {
    const token = request.cookies[SESSION_COOKIE]
    if (token !== undefined) await signIns.end(token)
  }
}

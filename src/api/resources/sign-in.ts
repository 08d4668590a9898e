/** `/session`: signing in and out by cookie. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { MAX_PASSWORD_BYTES } from '../../identity/password.ts'
import { FEATURES, LEVELS } from '../../model/profile-rights.ts'
import { type Caller, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { addressOf } from '../access/events.ts'
import { rightsOf } from '../access/profile-rights.ts'
import {
  begin,
  byAnswers,
  byBrowser,
  byPassword,
  byTicket,
  end,
  type Judged,
  recordFailure,
  refuse,
} from '../access/signing-in.ts'
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
const tags = ['Session']
/** Milliseconds after which a client has to ask again whether its person has decided. */
const POLL_MS = 25_000

const show = (caller: Pick<Caller, 'user' | 'profile' | 'rights'>): Static<typeof View> => ({
  user: caller.user?.userName ?? null,
  profile: caller.profile,
  rights: { ...caller.rights },
})

export function registerSignIn(app: Api, context: Context): void {
  const { deps } = context
  app.post(
    '/session',
    {
      schema: {
        tags,
        summary: 'Sign in',
        description:
          'Sets the cookie `sallyport_session`; each sign-in makes a new one. Where a further round is due, the answer is 401 second_factor_required with a challenge; its answers come with the next request: {"challenge": ID, "answers": […]}. A person who signs in in a browser only begins with {"user": NAME}: the challenge has a `link` for them and no prompts, and {"challenge": ID, "answers": []} is asked until they have confirmed. With the body {} and the header `Authorization: Negotiate TOKEN`, a Kerberos ticket signs in.',
        body: Credentials,
        response: { 200: View, ...errorResponses(400, 401, 403, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const judged = await judgedOf(request, reply, request.body)
      const { outcome, method, answer } = judged
      await recordFailure(context, request, judged)
      if (outcome.result === 'challenge') throw challengeError(outcome)
      if (outcome.result !== 'accepted')
        throw new ApiError(await refuse(context, request, { ...judged, outcome }))
      await begin(context, request, reply, { proved: outcome, method, answer })
      const { user } = outcome
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
      await end(context, request, reply)
      return reply.code(204).send(null)
    },
  )

  async function judgedOf(
    request: FastifyRequest,
    reply: Pick<FastifyReply, 'header'>,
    body: Static<typeof Credentials>,
  ): Promise<Judged> {
    const owner = `HTTPS ${addressOf(request)}`
    if (Object.keys(body).length === 0) {
      const shown = await byTicket(context, request, owner)
      if (shown) return { ...shown, method: 'negotiate' }
      // Asked for where it would be taken.
      if (await deps.shownTickets.areTaken()) {
        reply.header('www-authenticate', 'Negotiate')
        throw new ApiError('authentication_required')
      }
    }
    const method = 'api_password'
    const { user, password, challenge, answers } = body
    if (challenge !== undefined && answers && user === undefined && password === undefined) {
      if (await isStillWaiting(challenge, owner))
        throw challengeError({ result: 'challenge', challenge, message: '', prompts: [] })
      return { ...(await byAnswers(context, { challenge, answers, owner })), method }
    }
    if (user !== undefined && password === undefined && challenge === undefined && !answers) {
      const begun = await byBrowser(context, request, { user, owner })
      if (begun.outcome.result !== 'rejected' || begun.outcome.reason !== 'method_not_allowed')
        return { ...begun, method: 'browser' }
    }
    if (user === undefined || password === undefined || challenge !== undefined || answers)
      throw fieldError('invalid_field', 'user', 'expected user and password, or challenge and answers')
    return { ...(await byPassword(context, request, { user, password, owner })), method }
  }

  /** Waits for the person in the browser, no longer than a connection without a byte lives everywhere. */
  async function isStillWaiting(challenge: string, owner: string): Promise<boolean> {
    const decided = deps.identities.decided(challenge, owner)
    if (!decided) return false
    const patience = new AbortController()
    const late = sleep(POLL_MS, true, { signal: patience.signal, ref: false }).catch(() => true)
    const isLate = await Promise.race([decided.then(() => false), late])
    patience.abort()
    return isLate && deps.identities.waitsFor(challenge)
  }
}

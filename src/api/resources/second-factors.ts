/** `/users/USER/totp`: second factors. Users enrol themselves; an administrator resets. */
import { type Static, Type } from 'typebox'
import { MAX_PASSWORD_BYTES } from '../../identity/password.ts'
import type { User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import { Secret } from '../../model/secret.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, addressOf, record } from '../access/events.ts'
import { meantUser } from '../access/meant-user.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { proveAgain } from '../access/prove-again.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, timeOrNull, timeText, titled } from '../schema/fields.ts'
import { refuseBeyondOwn } from './users.ts'

const PATH = '/users/:ref/totp'
const Status = titled(
  'SecondFactor',
  exact({
    is_enrolled: Type.Boolean({ description: 'sign-ins ask for a one-time code' }),
    enrolled_at: timeOrNull('null: not enrolled'),
    recovery_codes: Type.Integer({ description: 'how many are left' }),
    security_keys: Type.Integer({ description: 'how many there are: factors in browsers' }),
    held_until: timeOrNull('until then no code is judged, since too many were wrong; null: they are judged'),
  }),
)
const Begin = titled(
  'SecondFactorBegin',
  exact({
    password: Type.String({
      minLength: 1,
      maxLength: MAX_PASSWORD_BYTES,
      description: "the caller's password once more: a stolen session cannot enrol",
    }),
  }),
)
const Enrolment = titled(
  'SecondFactorSecret',
  exact({
    secret: Type.String({ description: 'in base 32, for an authenticator that takes it typed' }),
    uri: Type.String({ description: 'the same as an otpauth:// URI, for a QR code' }),
  }),
)
const Code = titled(
  'OneTimeCode',
  exact({ code: Type.String({ minLength: 6, maxLength: 16, examples: ['123456'] }) }),
)
const RecoveryCodes = titled(
  'RecoveryCodes',
  exact({
    recovery_codes: Type.Array(Type.String(), {
      description: 'each signs in once in place of a one-time code; shown in this answer only',
    }),
  }),
)
const WRONG_CODE =
  'this is not the current code of the authenticator, it was used before, or too many were wrong: wait for the next one'
const tags = ['Users']
const errors = errorResponses(400, 401, 403, 404, 409, 413, 415, 503)

export function registerSecondFactors(app: Api, context: Context): void {
  const { audit, factors, store } = context.deps
  const params = paramsSchema(PATH)

  app.get(
    PATH,
    {
      schema: {
        tags,
        summary: 'Show whether a user has a second factor',
        description: "One's own, or any with `users: view`.",
        params,
        response: { 200: Status, ...errors },
      },
    },
    async (request) => {
      const user = await meantUser(store, request, reaches(callerOf(request).rights.users, 'view'))
      const { enrolled, recoveryCodes, securityKeys, heldUntil } = await factors.statusOf(user.id)
      return {
        is_enrolled: enrolled !== undefined,
        enrolled_at: enrolled === undefined ? null : timeText(enrolled),
        recovery_codes: recoveryCodes,
        security_keys: securityKeys,
        held_until: heldUntil === undefined ? null : timeText(heldUntil),
      }
    },
  )

  app.post(
    PATH,
    {
      schema: {
        tags,
        summary: 'Begin to enrol an authenticator for one-time codes',
        description:
          'For oneself. Answers the secret, once. Nothing is asked at sign-ins until a first code has confirmed it, within 15 minutes (`…/totp/confirm`).',
        params,
        body: Begin,
        response: { 201: Enrolment, ...errors },
      },
    },
    async (request, reply) => {
      const user = await own(request)
      if ((await factors.statusOf(user.id)).enrolled !== undefined) throw enrolledError()
      const verdict = await proveAgain(context, request, user, request.body.password, 'api_password')
      if (verdict === 'more_asked') {
        const message =
          'your servers ask for more than a password already: they are the place for a second factor'
        throw fieldError('invalid_field', 'password', message)
      }
      if (verdict === 'wrong') throw fieldError('invalid_field', 'password', 'expected your own password')
      const begun = await factors.begin(user)
      if (!begun) throw enrolledError()
      return await reply.code(201).send(begun)
    },
  )

  app.post(
    `${PATH}/confirm`,
    {
      schema: {
        tags,
        summary: 'Confirm an authenticator by its first code',
        description: 'Sign-ins ask for its codes from now on. Answers the recovery codes, once.',
        params,
        body: Code,
        response: { 200: RecoveryCodes, ...errors },
      },
    },
    (request) => withCode(request, request.body, 'factor.enrol'),
  )

  app.post(
    `${PATH}/recoverycodes`,
    {
      schema: {
        tags,
        summary: 'Replace the recovery codes',
        description: 'For oneself, by a current one-time code. Answers the new codes, once.',
        params,
        body: Code,
        response: { 200: RecoveryCodes, ...errors },
      },
    },
    (request) => withCode(request, request.body, 'factor.renew'),
  )

  app.delete(
    PATH,
    {
      schema: {
        tags,
        summary: 'Reset the second factor of a user',
        description:
          'Removes it with its recovery codes, and the security keys; the user can enrol again. Nobody resets their own: a stolen session could.',
        params,
        response: { 204: Type.Null(), ...errors },
      },
    },
    async (request, reply) => {
      const user = await ofAnother(request, 'resets it')
      await record(audit, request, 'factor.reset', { ...actor(callerOf(request)), ...subject(user) })
      await factors.remove(user.id)
      return reply.code(204).send(null)
    },
  )

  app.delete(
    `${PATH}/hold`,
    {
      schema: {
        tags,
        summary: 'End the hold of a user after wrong one-time codes',
        description:
          'Codes are judged again at once, and the next hold is as short as the first. The second factor stays. Nobody ends their own: a stolen password could.',
        params,
        response: { 204: Type.Null(), ...errors },
      },
    },
    async (request, reply) => {
      const user = await ofAnother(request, 'ends it')
      await record(audit, request, 'factor.release', { ...actor(callerOf(request)), ...subject(user) })
      await factors.release(user.id)
      return reply.code(204).send(null)
    },
  )

  /** Returns the user of the path, over whose factor the caller may decide. `deed`: the words for it. */
  async function ofAnother(request: ApiRequest, deed: string): Promise<User> {
    const user = await meantUser(store, request, true)
    refuseBeyondOwn(request, await rightsOf(store, user.profile))
    if (callerOf(request).user?.id !== user.id) return user
    const message = `this is your own: another administrator ${deed}, or sallyport admin reset-factor`
    throw new ApiError('forbidden', [{ message }])
  }

  async function own(request: ApiRequest): Promise<User> {
    const user = await meantUser(store, request, false)
    if (callerOf(request).basis?.proof.method !== 'password') {
      const message = 'sign in by POST /session: an API key neither has nor sets a second factor'
      throw new ApiError('forbidden', [{ message }])
    }
    return user
  }

  async function withCode(
    request: ApiRequest,
    { code: text }: Static<typeof Code>,
    event: 'factor.enrol' | 'factor.renew',
  ): Promise<Static<typeof RecoveryCodes>> {
    const user = await own(request)
    const { enrolled } = await factors.statusOf(user.id)
    if (event === 'factor.enrol' && enrolled !== undefined) throw enrolledError()
    if (event === 'factor.renew' && enrolled === undefined) throw new ApiError('not_found')
    const announce = () => record(audit, request, event, { ...actor(callerOf(request)), ...subject(user) })
    const code = Secret.of(text)
    try {
      const codes =
        event === 'factor.enrol'
          ? await factors.confirm(user.id, code, addressOf(request), announce)
          : await factors.renew(user.id, code, addressOf(request), announce)
      if (!codes) throw fieldError('invalid_field', 'code', WRONG_CODE)
      return { recovery_codes: codes }
    } finally {
      code.wipe()
    }
  }
}

const subject = (user: User) => ({ object_type: 'user', object: user.userName })

function enrolledError(): ApiError {
  const message = 'an authenticator is enrolled: an administrator can reset it'
  return new ApiError('duplicate', [{ message }])
}

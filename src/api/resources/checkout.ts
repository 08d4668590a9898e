/** Secrets at run time: checked out by an authorized user, and checked in. */
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { EventFields } from '../../audit/events/fields.ts'
import { looksLikeId } from '../../model/names.ts'
import type { Checkout, Id, User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import type { CheckedOut, CheckoutWish } from '../../vault/checkout.ts'
import { CheckoutError, FactorRequiredError } from '../../vault/checkout-refusals.ts'
import { MAX_PASSPHRASE_BYTES } from '../../vault/credentials.ts'
import { RewriteError, RewriterBusyError } from '../../vault/formats/rewriter.ts'
import { KEY_FORMATS } from '../../vault/formats/write.ts'
import { type Caller, callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { requireFactor } from '../access/factors.ts'
import { paramsSchema } from '../collection/paths.ts'
import { accountsMeant, ambiguous, type Placed, placeFields } from '../collection/references.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, oneOf, text, timeText, titled } from '../schema/fields.ts'

const Out = titled(
  'Checkout',
  exact({
    login: Type.String({ description: 'user name on the target' }),
    password: Type.Optional(Type.String()),
    private_key: Type.Optional(Type.String({ description: 'OpenSSH or PEM, or in the key_format' })),
    passphrase: Type.Optional(Type.String({ description: 'of a private key as it is stored' })),
    checkout_id: Type.String(),
    expires: Type.String({ format: 'date-time' }),
  }),
)
const Wish = titled(
  'CheckoutWish',
  exact({
    duration: Type.Optional(
      Type.Integer({ minimum: 1, description: "seconds; by the account's policy unless given" }),
    ),
    comment: Type.Optional(text('what it is for; in the audit and in GET /checkouts', 256)),
    ticket: Type.Optional(text('number of a request in another system; likewise', 64)),
    key_format: Type.Optional(
      oneOf(
        KEY_FORMATS,
        "form of the private key's file; as it is stored, unless this or passphrase is given",
      ),
    ),
    passphrase: Type.Optional(
      Type.String({
        maxLength: MAX_PASSPHRASE_BYTES,
        pattern: '^[^\\u0000-\\u001f]+$',
        description: 'encrypts the private key, which is handed out without one otherwise',
      }),
    ),
  }),
)
const checkoutId = Type.String({ minLength: 1, maxLength: 64 })
const In = titled('Checkin', exact({ checkout_id: checkoutId }))
const Extended = titled(
  'Extended',
  exact({ checkout_id: Type.String(), expires: Type.String({ format: 'date-time' }) }),
)
const tags = ['Accounts']

export function registerCheckout(app: Api, context: Context): void {
  const { deps } = context
  const { store, checkouts, audit, clock, rotation } = deps
  const params = paramsSchema('/:ref')

  const refuse = async (
    request: FastifyRequest,
    where: EventFields,
    reason: string,
    error: Error,
  ): Promise<never> => {
    await record(audit, request, 'checkout.denied', { ...personOf(request), ...where, reason })
    throw error
  }

  /** Does a change of the checkout after those asked before, if it is still out. @throws ApiError `not_found` */
  const change = <T>(id: Id, work: (now: Checkout) => Promise<T>): Promise<T> =>
    checkouts.inTurn(id, async () => {
      const checkout = await checkouts.out(id, clock())
      if (!checkout) throw new ApiError('not_found')
      return await work(checkout)
    })

  /** Does the work; where it needs a second factor, does it again if something counts for one. */
  const withFactor = async <T>(
    request: FastifyRequest,
    where: EventFields,
    hasFactor: true | undefined,
    work: (hasFactor: true | undefined) => Promise<T>,
  ): Promise<T> => {
    try {
      return await work(hasFactor)
    } catch (error) {
      if (!(error instanceof FactorRequiredError)) throw error
      await requireFactor(context, request, error.authorizationIds).catch((asked: Error) =>
        refuse(request, where, error.message, asked),
      )
      return await work(true)
    }
  }

  /** Returns the one account that is meant and that the user may check out. */
  const allowed = async (request: FastifyRequest, user: User, ref: string): Promise<Placed> => {
    const mine = await accountsMeant(store, ref, { retrievableBy: user.id })
    const [only, another] = mine
    if (only && another) throw ambiguous(mine)
    if (only) return only
    const meant = await accountsMeant(store, ref)
    const where = meant[0] && meant.length === 1 ? placeFields(meant[0]) : { account: ref }
    if (meant.length === 0) return refuse(request, where, 'unknown account', new ApiError('not_found'))
    return refuse(request, where, 'no authorization', notAllowed(request))
  }

  /** Returns the user's checkout that is out, and its account. @throws ApiError `not_found` */
  const outOf = async (request: FastifyRequest, user: User, id: string): Promise<[Checkout, Placed]> => {
    const checkout = looksLikeId(id) ? await checkouts.out(id.toUpperCase(), clock()) : undefined
    const { ref } = request.params as { ref: string }
    const [placed] = checkout ? await accountsMeant(store, ref, { id: checkout.accountId }) : []
    if (!placed || checkout?.userId !== user.id) throw new ApiError('not_found')
    return [checkout, placed]
  }

  app.post(
    '/accounts/:ref/checkout',
    {
      // The body may be missing.
      preValidation: async (request) => {
        request.body ??= {}
      },
      schema: {
        tags,
        summary: 'Check a secret out',
        description:
          'Without the right to view accounts, an account that does not exist and one that is not authorized get the same answer. Where the authorization requires a second factor that the sign-in had not, the answer is 401 `second_factor_required`; an API key is 403. An account that is locked is 409 `checked_out`; `details` say until when.',
        params,
        body: Wish,
        response: { 200: Out, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request) => {
      const user = userOf(request)
      const placed = await allowed(request, user, (request.params as { ref: string }).ref)
      const where = placeFields(placed)
      let out: CheckedOut
      try {
        const { key: apiKey, hasFactor } = callerOf(request)
        const { key_format: keyFormat, ...wishes } = request.body
        const wish = {
          ...wishes,
          ...(keyFormat !== undefined && { keyFormat }),
          ...(apiKey && { apiKey }),
        }
        const until = untilItsEnd(user, callerOf(request))
        out = await withFactor(request, where, hasFactor, (proved) =>
          checkouts.checkout(until, placed.account, clock, { ...wish, ...(proved && { hasFactor: true }) }),
        )
      } catch (error) {
        if (!isRefusal(error)) throw error
        if (error instanceof CheckoutError && error.reason === 'not_allowed')
          return refuse(request, where, error.told ?? error.message, notAllowed(request))
        return refuse(request, where, error.message, error)
      }
      const fields = { ...personOf(request), ...where }
      try {
        await record(audit, request, 'checkout.out', {
          ...fields,
          authorization: out.authorizationIds.join(','),
          object: out.checkoutId,
          duration: out.expires - out.begin,
          ...(out.approval !== undefined && { approval: out.approval }),
          ...toldOf(request.body),
        })
        if (!(await checkouts.mayHandOut(out, clock()))) {
          const reason = 'the checkout was over before its secret was handed out'
          return await refuse(request, where, reason, new ApiError('changed_meanwhile'))
        }
        if (request.raw.socket.destroyed) {
          const reason = 'the client went away before it had the secret'
          await record(audit, request, 'checkout.in', { ...fields, object: out.checkoutId, reason })
          throw new ApiError('request_timeout')
        }
        return {
          login: out.login,
          ...(out.password && { password: out.password.revealText() }),
          ...(out.privateKey && { private_key: out.privateKey.revealText() }),
          ...(out.passphrase && { passphrase: out.passphrase.revealText() }),
          checkout_id: out.checkoutId,
          expires: timeText(out.expires),
        }
      } catch (error) {
        // The secret was never delivered, so it is not checked out.
        await checkouts.undo(user, placed.account, out, clock()).catch((failure) => {
          if (!(failure instanceof CheckoutError))
            request.log.warn(
              { err: failure },
              'a checkout without a secret could not be ended: it will expire',
            )
        })
        throw error
      } finally {
        out.password?.wipe()
        out.privateKey?.wipe()
        out.passphrase?.wipe()
      }
    },
  )

  app.post(
    '/accounts/:ref/extend',
    {
      schema: {
        tags,
        summary: 'Extend a checkout',
        description: "Moves `expires` by the policy's `extension`, up to its `max_duration`.",
        params,
        body: In,
        response: { 200: Extended, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request) => {
      const user = userOf(request)
      const [checkout, placed] = await outOf(request, user, request.body.checkout_id)
      const { id, expires } = checkout
      const where = placeFields(placed)
      let end: number
      try {
        end = await checkouts.extendedEnd(checkout, clock())
      } catch (error) {
        if (!(error instanceof CheckoutError)) throw error
        return refuse(request, where, error.message, error)
      }
      await change(id, async (now) => {
        if (now.expires !== expires) throw new ApiError('changed_meanwhile')
        const fields = { ...personOf(request), ...where, object: id, duration: end - expires }
        await record(audit, request, 'checkout.extended', fields)
        try {
          await checkouts.extend(checkout, end, clock)
        } catch (error) {
          // The event is written, and there may be no change: another follows.
          return refuse(request, where, 'the extension could not be stored', error as Error)
        }
      })
      return { checkout_id: id, expires: timeText(end) }
    },
  )

  app.post(
    '/accounts/:ref/checkin',
    {
      schema: {
        tags,
        summary: 'Return a secret',
        params,
        body: In,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const user = userOf(request)
      const [checkout, placed] = await outOf(request, user, request.body.checkout_id)
      const fields = { ...personOf(request), ...placeFields(placed), object: checkout.id }
      await change(checkout.id, async () => {
        const now = clock()
        await record(audit, request, 'checkout.in', fields)
        await rotation.onReturn(placed.account.id, 'checkin', user.userName)
        await checkouts.checkin(user, placed.account, checkout.id, now)
        await rotation.freed(placed.account.id)
      })
      return reply.code(204).send(null)
    },
  )
}

const isRefusal = (error: unknown): error is Error =>
  error instanceof CheckoutError || error instanceof RewriterBusyError || error instanceof RewriteError

/** A caller that may view accounts may know that one exists; to others unknown and forbidden look the same. */
function notAllowed(request: FastifyRequest): ApiError {
  const mayKnow = reaches(callerOf(request).rights.accounts, 'view')
  return new ApiError(mayKnow ? 'forbidden' : 'not_found')
}

/** Returns the fields of the user, without the profile: only authorizations count here. */
function personOf(request: FastifyRequest): EventFields {
  const { profile: _profile, ...person } = actor(callerOf(request))
  return person
}

/** Returns what the user says about the checkout, as fields of its event. */
function toldOf({ comment, ticket }: Pick<CheckoutWish, 'comment' | 'ticket'>): EventFields {
  return { ...(comment !== undefined && { reason: comment }), ...(ticket !== undefined && { ticket }) }
}

/** Returns the user with the end of the access token, if one has asked: a checkout lasts no longer. */
function untilItsEnd(user: User, { basis }: Caller): User {
  const ends = basis?.proof.method === 'password' ? basis.proof.ends : undefined
  if (ends === undefined) return user
  return { ...user, expirationDate: Math.min(ends, user.expirationDate ?? Number.POSITIVE_INFINITY) }
}

/** Checkouts, and running sessions with a stored account: their list, and the forced end of a checkout. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { looksLikeId } from '../../model/names.ts'
import type { CheckoutRecord, Id, User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import { sendList } from '../access/answers.ts'
import { callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { fieldsOf, listQuery, pageOf, pick } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { placeFields } from '../collection/references.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { exact, oneOf, shown, timeOrNull, timeText, titled } from '../schema/fields.ts'

const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const View = titled(
  'CheckoutRecord',
  exact({
    ...shown,
    kind: oneOf(['checkout', 'session'] as const, 'session: a running session, which holds its account'),
    user: Type.String(),
    account: Type.String(),
    domain: Type.String(),
    device: orNull("null for an account of a global domain's checkout"),
    begin: Type.String({ format: 'date-time' }),
    expires: timeOrNull('null for a session, which holds the account until it ends'),
    end: timeOrNull('null while it is out'),
    result: Type.Union([oneOf(['returned', 'expired', 'forced'] as const, 'how it ended'), Type.Null()]),
    comment: orNull('of its user'),
    ticket: orNull('likewise'),
    forced_by: orNull('user who took it back'),
    forced_comment: orNull('and why'),
    api_key: orNull('the API key that asked for it'),
    approval: orNull('id of the approval that it needed'),
  }),
)
const Query = Type.Object(
  {
    ...listQuery,
    status: Type.Optional(oneOf(['current', 'closed'] as const, 'those that are out, or that have ended')),
  },
  { additionalProperties: false },
)
const Force = titled(
  'ForcedCheckin',
  exact({
    comment: Type.String({
      maxLength: 256,
      pattern: '\\S',
      description: 'why; kept, and shown',
    }),
  }),
)
const tags = ['Accounts']

export function registerCheckouts(app: Api, { deps, answers }: Context): void {
  const { store, checkouts, audit, clock } = deps
  const params = paramsSchema('/:ref')

  const list = (request: FastifyRequest, filter: { status?: 'current' | 'closed'; id?: Id }) => {
    const of = onlyOf(request)
    return (page?: Parameters<typeof store.checkouts.list>[1]) =>
      store.checkouts.list({ now: clock(), ...filter, ...(of && { of }) }, page)
  }

  app.get(
    '/checkouts',
    {
      schema: {
        tags,
        summary: 'List: Checkouts',
        description:
          "The newest first: the caller's own, and with `sessions`: view everybody's. Running sessions with a stored account are among them.",
        querystring: Query,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 503) },
      },
    },
    async (request, reply) => {
      const { status, ...query } = request.query
      const fields = fieldsOf(query, View)
      const now = clock()
      const listed = await list(request, status === undefined ? {} : { status })(pageOf(query, request))
      return sendList(answers, request, reply, listed, (records) =>
        records.map((one) => pick(show(apiBase(request), one, now), fields)),
      )
    },
  )

  app.get(
    '/checkouts/:ref',
    {
      schema: {
        tags,
        summary: 'Read one: Checkouts',
        params,
        response: { 200: View, ...errorResponses(400, 401, 403, 404, 503) },
      },
    },
    async (request) => {
      const { ref } = request.params as { ref: string }
      const { items } = looksLikeId(ref) ? await list(request, { id: ref.toUpperCase() })() : { items: [] }
      if (!items[0]) throw new ApiError('not_found')
      return show(apiBase(request), items[0], clock())
    },
  )

  app.post(
    '/checkouts/:ref/checkin',
    {
      schema: {
        tags,
        summary: 'Take a checkout back',
        description: 'Frees the account. Whoever has read the secret still knows it: change it.',
        params,
        body: Force,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const { ref } = request.params as { ref: string }
      if (!looksLikeId(ref)) throw new ApiError('not_found')
      const id = ref.toUpperCase()
      await checkouts.inTurn(id, async () => {
        const now = clock()
        const checkout = await checkouts.out(id, now)
        if (!checkout) throw new ApiError('not_found')
        const [placed] = await store.accounts.meant({ account: checkout.accountId }, 1)
        const holder = await store.users.find(checkout.userId)
        const caller = callerOf(request)
        const { comment } = request.body
        await record(audit, request, 'checkout.forced', {
          ...actor(caller),
          ...placeFields(placed),
          object: id,
          holder: holder?.userName ?? checkout.userId,
          reason: comment,
        })
        await store.checkouts.end(id, now, { by: caller.name, comment })
      })
      return reply.code(204).send(null)
    },
  )
}

/** Returns the user whose checkouts alone the caller may see, if not everybody's. @throws ApiError */
function onlyOf(request: FastifyRequest): User | undefined {
  const { rights } = callerOf(request)
  if (reaches(rights.sessions, 'view')) return undefined
  if (!reaches(rights.checkout, 'execute')) throw new ApiError('forbidden')
  return userOf(request)
}

function show(base: string, one: CheckoutRecord, now: number): Static<typeof View> {
  const path = one.kind === 'session' ? 'sessions' : 'checkouts'
  return {
    id: one.id,
    url: `${base}/${path}/${one.id}`,
    kind: one.kind,
    user: one.user,
    account: one.account,
    domain: one.domain,
    device: one.device === '' ? null : one.device,
    begin: timeText(one.begin),
    expires: one.expires === undefined ? null : timeText(one.expires),
    end: one.end === undefined ? null : timeText(one.end),
    result: resultOf(one, now),
    comment: one.comment ?? null,
    ticket: one.ticket ?? null,
    forced_by: one.forced?.by ?? null,
    forced_comment: one.forced?.comment ?? null,
    api_key: one.apiKey ?? null,
    approval: one.approval ?? null,
  }
}

/** The end of an expired checkout is written some seconds later. */
function resultOf({ end, expires, forced }: CheckoutRecord, now: number): Static<typeof View>['result'] {
  if (forced) return 'forced'
  if (expires === undefined) return null
  const over = end ?? (expires <= now ? expires : undefined)
  if (over === undefined) return null
  return over < expires ? 'returned' : 'expired'
}

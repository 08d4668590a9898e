/** Changes of secrets at their targets on demand, what became of them, and their figures. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import type { EventFields } from '../../audit/events/fields.ts'
import { CREDENTIAL_TYPES, type CredentialType, type Domain } from '../../model/objects.ts'
import { CHANGE_CAUSES, CHANGE_OUTCOMES, type SecretJob } from '../../model/password-change.ts'
import { reaches } from '../../model/profiles.ts'
import type { Credential } from '../../vault/credentials.ts'
import { sendList } from '../access/answers.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { credentialsIn, credentialsOf, wipeAll } from '../collection/credentials.ts'
import { fieldsOf, ListQuery, pageOf, pick } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { accountsMeant, accountText, ambiguous, type Placed, placeFields } from '../collection/references.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { exact, oneOf, shown, text, timeOrNull, timeText, titled } from '../schema/fields.ts'

/** Seconds for which an answer may wait for the outcome. */
const MAX_WAIT = 60
/** Characters of a comment. */
const MAX_COMMENT = 256

const View = titled(
  'SecretChange',
  exact({
    ...shown,
    type: oneOf(CREDENTIAL_TYPES, 'kind of secret'),
    kind: oneOf(['change', 'check'] as const, 'check: whether the target accepts the stored secret'),
    cause: oneOf(CHANGE_CAUSES, 'what asked for it'),
    user: Type.Union([Type.String(), Type.Null()], { description: 'null for a schedule' }),
    created: Type.String({ format: 'date-time' }),
    end: timeOrNull('null while it goes on'),
    due: timeOrNull('next attempt'),
    attempts: Type.Integer({ description: 'attempts that have failed so far' }),
    outcome: Type.Union([oneOf(CHANGE_OUTCOMES, 'unknown: both secrets are kept'), Type.Null()]),
    reason: Type.Union([Type.String(), Type.Null()], { description: 'code of the last failure' }),
    message: Type.Union([Type.String(), Type.Null()], { description: 'the same in words' }),
  }),
)
const Wish = titled(
  'SecretChangeWish',
  exact({
    types: Type.Optional(
      Type.Array(oneOf(CREDENTIAL_TYPES, 'kind of secret'), {
        minItems: 1,
        maxItems: CREDENTIAL_TYPES.length,
        description: 'which secrets; all unless given',
      }),
    ),
    credentials: Type.Optional(credentialsIn),
    force: Type.Optional(
      Type.Boolean({
        description: 'does not wait for check-ins and sessions, and ends the checkouts; needs `comment`',
      }),
    ),
    comment: Type.Optional(text('why; in the audit', MAX_COMMENT)),
    wait: Type.Optional(
      Type.Integer({ minimum: 0, maximum: MAX_WAIT, description: 'seconds to wait for the outcome; 30' }),
    ),
  }),
)
const DomainWish = titled(
  'DomainChangeWish',
  exact({ force: Wish.properties.force, comment: Wish.properties.comment }),
)
const DomainView = titled(
  'DomainSecretChange',
  exact({ account: Type.String({ description: 'its name' }), ...View.properties }),
)
const Figures = titled(
  'Dashboard',
  exact({
    secrets: exact({
      managed: Type.Integer({ description: 'accounts whose domain changes secrets' }),
      overdue: Type.Integer({ description: 'older than their policy allows, or of unknown age' }),
      mismatch: Type.Integer({ description: 'refused by the target when they were proved last' }),
      unknown: Type.Integer({ description: 'of an unfinished change that could not be cleared up' }),
      pending: Type.Integer({ description: 'being changed' }),
    }),
  }),
)
const tags = ['Accounts']

/**
 * A forced change ends checkouts and sessions of other users.
 * @throws ApiError `forbidden`, or `invalid_field` without a comment
 */
function requireForce(request: FastifyRequest, { force, comment }: Static<typeof DomainWish>): void {
  if (!force) return
  if (!reaches(callerOf(request).rights.sessions, 'execute')) throw new ApiError('forbidden')
  if (comment === undefined || comment.trim() === '')
    throw fieldError(
      'invalid_field',
      'comment',
      'a forced change ends checkouts of others: it needs a reason',
    )
}

export function registerSecretChanges(app: Api, { deps, answers }: Context): void {
  const { store, rotation, clock, audit } = deps
  const params = paramsSchema('/:ref')

  const placedOf = async (request: FastifyRequest): Promise<Placed> => {
    const meant = await accountsMeant(store, (request.params as { ref: string }).ref)
    if (meant.length > 1) throw ambiguous(meant)
    if (!meant[0]) throw new ApiError('not_found')
    return meant[0]
  }
  /** Writes the event of the request, before its jobs are stored. */
  const announce = (
    request: FastifyRequest,
    { force, comment }: Static<typeof DomainWish>,
    fields: EventFields,
  ) =>
    record(audit, request as ApiRequest, 'secret.request', {
      ...actor(callerOf(request)),
      method: force ? 'force' : 'demand',
      ...fields,
      ...(comment !== undefined && comment !== '' && { reason: comment }),
    })
  const shownOf = (request: FastifyRequest, account: string, job: SecretJob) =>
    show(`${apiBase(request)}/accounts/${account}/history`, job)

  app.post(
    '/accounts/:ref/change',
    {
      preValidation: async (request) => {
        request.body ??= {}
      },
      schema: {
        tags,
        summary: "Change an account's secrets",
        description:
          'At the target, by the plugin of its domain. 200 with the outcome, or 202 if there is none within `wait` seconds: see the history then. Sessions that use the old secret end.',
        params,
        body: Wish,
        response: {
          200: Type.Array(View),
          202: Type.Array(View),
          ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503),
        },
      },
    },
    async (request, reply) => {
      const placed = await placedOf(request)
      const { account } = placed
      const { types, wait = 30, credentials } = request.body
      const given = credentialsOf(credentials ?? [])
      let jobs: SecretJob[]
      try {
        jobs = await ask(request, placed, given, types, request.body)
      } finally {
        wipeAll(given)
      }
      const done = await Promise.all(jobs.map(({ id }) => rotation.attempted(id, wait * 1000)))
      const found = done.flatMap((job) => (job ? [job] : []))
      const isOver = found.every(({ ended }) => ended !== undefined)
      return reply.code(isOver ? 200 : 202).send(found.map((job) => shownOf(request, account.id, job)))
    },
  )

  const ask = async (
    request: FastifyRequest,
    placed: Placed,
    given: readonly Credential[],
    types: readonly CredentialType[] | undefined,
    wish: Static<typeof DomainWish>,
  ): Promise<SecretJob[]> => {
    const { account } = placed
    requireForce(request, wish)
    for (const { type } of given)
      if ((await store.secretJobs.pending(account.id, type)).next)
        throw fieldError(
          'invalid_field',
          'credentials',
          'an earlier change is unfinished: change it without this field first',
        )
    const wanted = types ?? (given.length > 0 ? given.map(({ type }) => type) : account.credentialTypes)
    for (const { type } of given)
      if (!wanted.includes(type))
        throw fieldError('invalid_field', 'credentials', `types does not name ${type}`)
    if (!(await rotation.changes(account, wanted))) throw new ApiError('not_changeable')
    await announce(request, wish, {
      object_type: 'account',
      object: accountText(placed),
      ...placeFields(placed),
    })
    const isForced = wish.force ?? false
    const asked = { cause: 'demand', user: callerOf(request).name, isForced } as const
    const jobs: SecretJob[] = []
    for (const type of wanted) {
      const secret = given.find((one) => one.type === type)
      jobs.push(...(await rotation.change(account, { ...asked, types: [type] }, secret)))
    }
    // The domain may have been changed meanwhile.
    if (jobs.length === 0) throw new ApiError('not_changeable')
    return jobs
  }

  app.get(
    '/accounts/:ref/history',
    {
      schema: {
        tags,
        summary: "Changes and checks of an account's secrets",
        description: 'The newest first; the secrets themselves are nowhere in it.',
        params,
        querystring: ListQuery,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const { account } = await placedOf(request)
      const fields = fieldsOf(request.query, View)
      const listed = (page?: Parameters<typeof store.secretJobs.list>[1]) =>
        store.secretJobs.list(account.id, page)
      return sendList(answers, request, reply, await listed(pageOf(request.query, request)), (jobs) =>
        jobs.map((job) => pick(shownOf(request, account.id, job), fields)),
      )
    },
  )

  const domainOf = async (request: FastifyRequest): Promise<Domain> => {
    const domain = await store.domains.find((request.params as { ref: string }).ref)
    if (!domain) throw new ApiError('not_found')
    return domain
  }

  app.get(
    '/domains/:ref/history',
    {
      schema: {
        tags: ['Domains'],
        summary: "Changes and checks of the secrets of a domain's accounts",
        description:
          'Of a global domain, or by its id of a local one; the newest first. `created` of all that one request has asked for is the same, except where a change was waiting already.',
        params,
        querystring: ListQuery,
        response: { 200: Type.Array(DomainView), ...errorResponses(400, 401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const { id } = await domainOf(request)
      const fields = fieldsOf(request.query, DomainView)
      const listed = await store.secretJobs.listOfDomain(id, pageOf(request.query, request))
      return sendList(answers, request, reply, listed, (jobs) =>
        jobs.map(({ accountName, ...job }) =>
          pick({ account: accountName, ...shownOf(request, job.accountId, job) }, fields),
        ),
      )
    },
  )

  app.post(
    '/domains/:ref/change',
    {
      preValidation: async (request) => {
        request.body ??= {}
      },
      schema: {
        tags: ['Domains'],
        summary: "Change all secrets of a domain's accounts",
        description: 'Of a global domain, or by its id of a local one. Reports the accounts one by one.',
        params,
        body: DomainWish,
        response: {
          202: Type.Array(exact({ account: Type.String(), change: View })),
          ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503),
        },
      },
    },
    async (request, reply) => {
      const domain = await domainOf(request)
      if (!domain.change?.isEnabled) throw new ApiError('not_changeable')
      const { force = false } = request.body
      requireForce(request, request.body)
      const device = domain.deviceId === undefined ? undefined : await store.devices.find(domain.deviceId)
      await announce(request, request.body, {
        object_type: 'domain',
        object: [domain.domainName, device?.deviceName ?? []].flat().join('@'),
        domain: domain.domainName,
        ...(device && { device: device.deviceName }),
      })
      const jobs = await rotation.changeDomain(domain, callerOf(request).name, force)
      const { items } = await store.accounts.list({ limit: -1, offset: 0 }, { domainId: domain.id })
      const names = new Map(items.map(({ id, accountName }) => [id, accountName]))
      return reply.code(202).send(
        jobs.map((job) => ({
          account: names.get(job.accountId) ?? job.accountId,
          change: shownOf(request, job.accountId, job),
        })),
      )
    },
  )

  app.get(
    '/dashboard',
    {
      schema: {
        tags,
        summary: 'Figures',
        response: { 200: Figures, ...errorResponses(401, 403, 503) },
      },
    },
    async () => ({ secrets: await store.secretJobs.figures(clock()) }),
  )
}

function show(base: string, job: SecretJob): Static<typeof View> {
  return {
    id: job.id,
    url: `${base}?q=id%3D${job.id}`,
    type: job.type,
    kind: job.kind,
    cause: job.cause,
    user: job.user === '' ? null : job.user,
    created: timeText(job.created),
    end: job.ended === undefined ? null : timeText(job.ended),
    due: job.ended === undefined ? timeText(job.due) : null,
    attempts: job.attempts,
    outcome: job.outcome ?? null,
    reason: job.code ?? null,
    message: job.message ?? null,
  }
}

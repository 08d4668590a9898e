/** Requests for approval: made, listed, answered and cancelled. */
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { retrievalTermsAt } from '../../access/retrievals.ts'
import { canonicalName } from '../../access/targets.ts'
import type { Request } from '../../gate/approvals.ts'
import { askedTarget } from '../../gate/asked-target.ts'
import { objectOf } from '../../gate/clearance.ts'
import {
  APPROVAL_KINDS,
  APPROVAL_STATES,
  type Approval,
  commentFlaw,
  endOf,
  MAX_AHEAD,
  MAX_COMMENT,
  MAX_DURATION,
  MAX_TICKET_TEXT,
  type Refusal,
  reasonFlaw,
  STANDARD_DURATION,
  ticketFlaw,
  type Wanted,
} from '../../model/approvals.ts'
import { looksLikeId } from '../../model/names.ts'
import type { Id, User } from '../../model/objects.ts'
import { reaches } from '../../model/profiles.ts'
import type { ApprovalDetails, ApprovalFilter } from '../../store/store.ts'
import { sendList } from '../access/answers.ts'
import { callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, addressOf } from '../access/events.ts'
import { fieldsOf, listQuery, pageOf, pick } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { accountsMeant, ambiguous, type Placed } from '../collection/references.ts'
import { reviewed } from '../collection/review.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, type ErrorCode, fieldError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { check, exact, oneOf, shown, text, timeOf, timeOrNull, timeText, titled } from '../schema/fields.ts'

const orNull = (description: string) => Type.Union([Type.String(), Type.Null()], { description })
const seconds = Type.Integer({ minimum: 1, maximum: MAX_DURATION / 1000, description: 'seconds' })
const state = oneOf(APPROVAL_STATES, 'one that was accepted and revoked is cancelled')

const View = titled(
  'Approval',
  exact({
    ...shown,
    kind: oneOf(APPROVAL_KINDS, 'what it is about; command: a held line of a running session'),
    user: Type.String({ description: 'the requester' }),
    target: Type.String({ description: 'canonical name of the target, or ACCOUNT@DOMAIN[@DEVICE]' }),
    authorization: Type.String({ description: 'USERGROUP:TARGETGROUP' }),
    status: state,
    creation: Type.String({ format: 'date-time' }),
    begin: timeOrNull('null until it is accepted, if it was asked for at once'),
    end: timeOrNull('likewise'),
    duration: seconds,
    timeout: Type.String({ format: 'date-time', description: 'until when it has to be answered' }),
    comment: Type.String(),
    ticket: Type.String(),
    quorum: Type.Integer({ description: 'approvers that have to agree' }),
    single_connection: Type.Boolean({ description: 'opens one session, or one checkout, only' }),
    answers: Type.Array(
      exact({
        approver: Type.String(),
        approved: Type.Boolean(),
        comment: Type.String(),
        date: Type.String({ format: 'date-time' }),
        api_key: orNull('the API key that answered for the approver'),
      }),
    ),
    ended_by: orNull('user who rejected, cancelled or revoked it'),
    ended_comment: orNull('and why'),
    session: orNull('of a held command: the session'),
    detail: orNull(
      'of a held command: the line, and until it is answered the screen in view; null without `recordings`: view, for others than its user and its approvers',
    ),
    sessions: Type.Array(Type.String(), { description: 'ids of the sessions that came of it' }),
    checkouts: Type.Array(Type.String(), { description: 'likewise' }),
    api_key: orNull('the API key that asked for it'),
  }),
)
const Query = Type.Object({ ...listQuery, status: Type.Optional(state) }, { additionalProperties: false })
const Ask = titled(
  'ApprovalRequest',
  exact({
    target: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: 'canonical name of a target, or as in a login string; or an account, as in `account`',
        examples: ['root@local:srv1:ssh'],
      }),
    ),
    account: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 512,
        description: 'instead of a target, to check its secret out: ACCOUNT@DOMAIN[@DEVICE] or its id',
      }),
    ),
    begin: Type.Optional(
      Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
        description: 'at most 90 days ahead; as soon as it is accepted unless given',
      }),
    ),
    duration: Type.Optional(
      Type.Integer({ ...seconds, description: 'seconds from its begin, default 3600, at most 7 days' }),
    ),
    comment: Type.Optional(text('what it is for; several lines', MAX_COMMENT)),
    ticket: Type.Optional(text('number of a request in another system', MAX_TICKET_TEXT)),
  }),
)
const comment = text('kept, and shown to the requester', MAX_COMMENT)
const Accept = titled(
  'ApprovalAccept',
  exact({
    comment: Type.Optional(comment),
    duration: Type.Optional(
      Type.Integer({ ...seconds, description: 'seconds, if it is to be shorter than asked for' }),
    ),
  }),
)
const End = titled('ApprovalEnd', exact({ comment: Type.Optional(comment) }))
const tags = ['Approvals']

const REFUSED: Readonly<Record<Refusal | 'not_found', ErrorCode>> = {
  not_found: 'not_found',
  own_request: 'own_request',
  not_pending: 'not_pending',
  answered_already: 'answered_already',
}

export function registerApprovals(app: Api, context: Context): void {
  const { deps, answers } = context
  const { store, approvals, clock } = deps
  const params = paramsSchema('/:ref')

  /** Returns what the caller may see: with `sessions`: view all, else the own and those to be answered. */
  const seenBy = (request: FastifyRequest): ApprovalFilter => {
    const { rights, user } = callerOf(request)
    if (reaches(rights.sessions, 'view')) return {}
    const own = user ?? userOf(request)
    return { of: own.id, ...(reaches(rights.approvals, 'execute') && { answerableBy: own.id }) }
  }
  const found = async (request: FastifyRequest): Promise<Approval> => {
    const { ref } = request.params as { ref: string }
    const filter = { ...seenBy(request), id: ref.toUpperCase() }
    const { items } = looksLikeId(ref) ? await store.approvals.list(filter) : { items: [] }
    if (!items[0]) throw new ApiError('not_found')
    return items[0]
  }
  /** Returns whether the caller may see the screen of a held command: as a recording, as its user, or to answer. */
  const screens = (request: FastifyRequest) => {
    const { rights, user, key } = callerOf(request)
    const may = new Map<Id, boolean>()
    return async (one: Approval): Promise<boolean> => {
      if (reaches(rights.recordings, 'view') || user?.id === one.userId) return true
      if (!user || !reaches(rights.approvals, 'execute')) return false
      const { authorizationId: id } = one
      const known = may.get(id) ?? (await store.approvals.mayAnswer(one, user.id, clock(), key?.profile))
      may.set(id, known)
      return known
    }
  }
  const views = async (request: FastifyRequest, items: readonly Approval[]) => {
    const details = await store.approvals.details(items.map(({ id }) => id))
    const maySee = screens(request)
    const shownItems: Static<typeof View>[] = []
    for (const one of items) {
      const isShown = one.detail !== '' && (await maySee(one))
      const parts = isShown ? [one.detail, approvals.screenOf(one)] : []
      const detail = parts.filter((part) => part !== '').join('\n\n')
      shownItems.push(show(apiBase(request), { ...one, detail }, details.get(one.id)))
    }
    return shownItems
  }
  const viewOf = async (request: FastifyRequest, one: Approval) => (await views(request, [one]))[0]!
  const actorOf = (request: FastifyRequest, user: User) => {
    const { key } = callerOf(request)
    return {
      userId: user.id,
      name: user.userName,
      fields: { ...actor(callerOf(request)), client_ip: addressOf(request) },
      ...(key && { keyProfile: key.profile }),
    }
  }

  app.get(
    '/approvals',
    {
      schema: {
        tags,
        summary: 'List: Approvals',
        description:
          "The newest first: the caller's own and those that the caller may answer; with `sessions`: view all.",
        querystring: Query,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 503) },
      },
    },
    async (request, reply) => {
      const { status, ...query } = request.query
      const fields = fieldsOf(query, View)
      const filter = { ...seenBy(request), ...(status !== undefined && { status }) }
      const listed = await store.approvals.list(filter, pageOf(query, request))
      return sendList(answers, request, reply, listed, async (some) =>
        (await views(request, some)).map((one) => pick(one, fields)),
      )
    },
  )

  app.get(
    '/approvals/:ref',
    {
      schema: {
        tags,
        summary: 'Read one: Approvals',
        params,
        response: { 200: View, ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => viewOf(request, await found(request)),
  )

  app.post(
    '/approvals',
    {
      schema: {
        tags,
        summary: 'Ask for an approval',
        description:
          'For a target, or for the secret of an account. What opens without an approval is 409 `approval_not_needed`.',
        body: Ask,
        response: { 201: View, ...errorResponses(400, 401, 403, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const user = userOf(request)
      const { body } = request
      const now = clock()
      const begin = body.begin === undefined ? undefined : timeOf('begin', body.begin)
      const duration = (body.duration ?? STANDARD_DURATION / 1000) * 1000
      if (begin !== undefined) {
        check('begin', begin > now + MAX_AHEAD ? 'expected a time within 90 days' : undefined)
        check('begin', begin + duration <= now ? 'this time is over already' : undefined)
      }
      const { object, wanted } = await meant(context, user, body)
      const reason = { comment: body.comment ?? '', ticket: body.ticket ?? '' }
      check('comment', commentFlaw(reason.comment))
      check('ticket', ticketFlaw(reason.ticket))
      const flaw = reasonFlaw(reason, wanted)
      if (flaw !== undefined)
        throw fieldError(
          'invalid_field',
          wanted.comment === 'mandatory' && !reason.comment.trim() ? 'comment' : 'ticket',
          flaw,
        )
      const { key } = callerOf(request)
      const { fields } = actorOf(request, user)
      const asked = await approvals.ask(
        {
          ...object,
          ...reason,
          userId: user.id,
          userName: user.userName,
          duration,
          ...(begin !== undefined && { begin }),
          ...(key && { apiKey: key.keyName }),
        },
        fields,
      )
      if (!asked) throw new ApiError('too_many_approvals')
      const view = await viewOf(request, asked)
      return reply.code(201).send(view)
    },
  )

  const answer = (approved: boolean) => async (request: FastifyRequest) => {
    const user = userOf(request)
    const { id } = await found(request)
    const body = request.body as Static<typeof Accept>
    check('comment', commentFlaw(body.comment ?? ''))
    const { key } = callerOf(request)
    const changed = await approvals.answer(id, actorOf(request, user), {
      approved,
      comment: body.comment ?? '',
      apiKey: key?.keyName ?? '',
      ...(body.duration !== undefined && { duration: body.duration * 1000 }),
    })
    if (typeof changed === 'string') throw new ApiError(REFUSED[changed])
    await reviewed(context, request)
    return viewOf(request, changed)
  }
  // The body may be missing.
  const preValidation = async (request: FastifyRequest) => {
    request.body ??= {}
  }
  const response = { 200: View, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) }
  app.post(
    '/approvals/:ref/accept',
    {
      preValidation,
      schema: {
        tags,
        summary: 'Accept a request',
        description: 'Counts once for each approver, and never for the requester.',
        params,
        body: Accept,
        response,
      },
    },
    answer(true),
  )
  app.post(
    '/approvals/:ref/reject',
    {
      preValidation,
      schema: {
        tags,
        summary: 'Reject a request',
        description: 'One rejection is enough.',
        params,
        body: End,
        response,
      },
    },
    answer(false),
  )
  app.post(
    '/approvals/:ref/cancel',
    {
      preValidation,
      schema: {
        tags,
        summary: 'Cancel a request, or revoke an approval',
        description:
          'By its requester, an approver, or with `sessions`: execute. Ends the sessions and checkouts that came of it.',
        params,
        body: End,
        response,
      },
    },
    async (request) => {
      const caller = callerOf(request)
      const one = await found(request)
      const isOwn = caller.user?.id === one.userId
      const mayKill = reaches(caller.rights.sessions, 'execute')
      const isApprover = async () =>
        caller.user !== undefined &&
        reaches(caller.rights.approvals, 'execute') &&
        (await store.approvals.mayAnswer(one, caller.user.id, clock(), caller.key?.profile))
      if (!isOwn && !mayKill && !(await isApprover())) throw new ApiError('forbidden')
      check('comment', commentFlaw(request.body.comment ?? ''))
      const changed = await approvals.cancel(one.id, {
        name: caller.name,
        fields: { ...actor(caller), client_ip: addressOf(request) },
        comment: request.body.comment ?? '',
      })
      if (typeof changed === 'string') throw new ApiError(REFUSED[changed])
      await reviewed(context, request)
      return viewOf(request, changed)
    },
  )
}

type Asked = Omit<Request, 'userId' | 'userName' | 'duration' | 'comment' | 'ticket'>
interface Meant {
  object: Asked
  wanted: { comment: Wanted; ticket: Wanted }
}

/** Returns what the request is about. @throws ApiError: the same for what does not exist, and what is not allowed */
async function meant({ deps }: Context, user: User, body: Static<typeof Ask>): Promise<Meant> {
  const { store } = deps
  const { target: named, account: ref } = body
  if ((named === undefined) === (ref === undefined))
    throw fieldError('invalid_field', 'target', 'expected either a target or an account')
  const found = named === undefined ? undefined : await askedTarget(store, user.id, named, deps.clock())
  if (found && 'candidates' in found)
    throw new ApiError(
      'ambiguous_reference',
      found.candidates.map((message) => ({ message })),
    )
  if (found) {
    const { target } = found
    if (target.quorum === undefined) throw new ApiError('approval_not_needed')
    return {
      object: {
        kind: 'session',
        ...objectOf(target),
        authorizationId: target.authorizationIds[0] ?? '',
        authorizationName: target.authorizationNames[0] ?? '',
        target: canonicalName(target),
        quorum: target.quorum,
      },
      wanted: target.wanted ?? { comment: 'none', ticket: 'none' },
    }
  }
  const field = ref === undefined ? 'target' : 'account'
  const text = ref ?? named ?? ''
  const mine = await accountsMeant(store, text, { retrievableBy: user.id })
  if (mine.length > 1) throw ambiguous(mine)
  const [placed] = mine
  const asked = placed && [{ userId: user.id, accountId: placed.account.id }]
  const terms = asked && retrievalTermsAt(await store.access.retrievals(asked), deps.clock())
  if (!placed || !terms)
    throw fieldError('unknown_reference', field, `"${text}" does not exist, or you may not open it`)
  if (terms.quorum === undefined) throw new ApiError('approval_not_needed')
  return {
    object: {
      kind: 'checkout',
      serviceId: '',
      accountId: placed.account.id,
      login: '',
      authorizationId: terms.authorizationIds[0] ?? '',
      authorizationName: terms.authorizationNames[0] ?? '',
      target: nameOf(placed),
      quorum: terms.quorum,
    },
    wanted: terms.wanted,
  }
}

function nameOf({ account, domain, device }: Placed): string {
  const name = `${account.accountName}@${domain.domainName}`
  return device ? `${name}@${device.deviceName}` : name
}

function show(base: string, one: Approval, details: ApprovalDetails | undefined): Static<typeof View> {
  const end = endOf(one)
  const orNone = (value: string) => (value === '' ? null : value)
  return {
    id: one.id,
    url: `${base}/approvals/${one.id}`,
    kind: one.kind,
    user: one.userName,
    target: one.target,
    authorization: one.authorizationName,
    status: one.state,
    creation: timeText(one.created),
    begin: one.begin === undefined ? null : timeText(one.begin),
    end: end === undefined ? null : timeText(end),
    duration: Math.ceil(one.duration / 1000),
    timeout: timeText(one.answerBy),
    comment: one.comment,
    ticket: one.ticket,
    quorum: one.quorum,
    single_connection: one.isSingle,
    answers: (details?.answers ?? []).map((answer) => ({
      approver: answer.userName,
      approved: answer.approved,
      comment: answer.comment,
      date: timeText(answer.time),
      api_key: orNone(answer.apiKey),
    })),
    ended_by: orNone(one.ended?.by ?? ''),
    ended_comment: orNone(one.ended?.comment ?? ''),
    session: orNone(one.session),
    detail: orNone(one.detail),
    sessions: details?.sessions ?? [],
    checkouts: details?.checkouts ?? [],
    api_key: orNone(one.apiKey),
  }
}

/** Sessions for auditors: past and running ones, their events and recordings. */
import { type Static, Type } from 'typebox'
import { shownEvent } from '../../audit/questions.ts'
import type { OrderedBy } from '../../gate/holds.ts'
import { type LegalHold, RECORDING_STATES, type SessionRecord } from '../../model/objects.ts'
import { PROTOCOLS, RIGHTS } from '../../model/rights.ts'
import { isFresh, RELEASE_MS } from '../../recording-service/deletion.ts'
import { sendList } from '../access/answers.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { withContents } from '../collection/contents.ts'
import { fieldsOf, listQuery, pageOf, pick } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { MAX_EVENTS } from '../http/limits.ts'
import { apiBase } from '../http/version.ts'
import { exact, oneOf, shown, timeOrNull, timeText, titled } from '../schema/fields.ts'
import { EventView } from './events.ts'

const orNull = <T extends Parameters<typeof Type.Union>[0][number]>(schema: T) =>
  Type.Union([schema, Type.Null()])

const View = titled(
  'Session',
  exact({
    ...shown,
    begin: Type.String({ format: 'date-time' }),
    end: timeOrNull('null while it runs'),
    user: Type.String(),
    source_ip: Type.String(),
    protocol: oneOf(PROTOCOLS, 'protocol'),
    subprotocols: Type.Array(oneOf(RIGHTS, 'right'), { description: 'rights that were used' }),
    account: Type.String(),
    domain: Type.String(),
    device: Type.String(),
    service: Type.String(),
    target_host: Type.String(),
    result: orNull(oneOf(['success', 'failure', 'killed', 'lost'] as const, 'null while it runs')),
    killed: Type.Boolean(),
    reason: orNull(Type.String()),
    authorization: Type.String(),
    approval: orNull(Type.String({ description: 'id of the approval that it was opened by' })),
    comment: orNull(
      Type.String({ description: 'why the user opened it, if the authorization asks for that' }),
    ),
    ticket: orNull(Type.String({ description: 'likewise' })),
    is_recorded: Type.Boolean(),
    bytes_in: Type.Integer(),
    bytes_out: Type.Integer(),
    api_key: orNull(Type.String({ description: 'the API key that asked for the ticket it was opened with' })),
    recording: orNull(
      exact({
        state: oneOf(RECORDING_STATES, 'state'),
        size: Type.Integer(),
        frames: Type.Integer(),
        digest: Type.String(),
      }),
    ),
    suspended: orNull(
      exact({
        reason: Type.String(),
        by: orNull(Type.String({ description: 'null if nobody watches a session that has to be watched' })),
        since: Type.String({ format: 'date-time' }),
      }),
    ),
    legal_hold: orNull(
      exact({
        by: Type.String(),
        since: Type.String({ format: 'date-time' }),
        reason: Type.String(),
        release: orNull(
          exact({
            by: Type.String(),
            since: Type.String({ format: 'date-time' }),
            until: Type.String({ format: 'date-time' }),
            reason: Type.String(),
          }),
        ),
      }),
    ),
  }),
)
const Query = Type.Object(
  {
    ...listQuery,
    status: Type.Optional(oneOf(['current', 'closed'] as const, 'those that run, or that have ended')),
  },
  { additionalProperties: false },
)
const Kill = titled(
  'Kill',
  exact({
    reason: Type.String({ minLength: 1, maxLength: 256, description: 'shown to the user, and kept' }),
  }),
)
const Suspend = titled(
  'Suspend',
  exact({
    reason: Type.String({ minLength: 1, maxLength: 256, description: 'shown to the user, and kept' }),
  }),
)
const tags = ['Sessions']

export function registerSessions(app: Api, { deps, answers }: Context): void {
  const { store, sessionControl, clock } = deps
  const params = paramsSchema('/:ref')

  const show = (base: string, session: SessionRecord): Static<typeof View> => ({
    id: session.id,
    url: `${base}/sessions/${session.id}`,
    begin: timeText(session.begin),
    end: session.end === undefined ? null : timeText(session.end),
    user: session.user,
    source_ip: session.sourceIp,
    protocol: session.protocol,
    subprotocols: session.subprotocols,
    account: session.account,
    domain: session.domain,
    device: session.device,
    service: session.service,
    target_host: session.targetHost,
    result: session.result ?? null,
    killed: session.result === 'killed',
    reason: session.reason ?? null,
    authorization: session.authorization,
    approval: session.approval ?? null,
    comment: session.comment ?? null,
    ticket: session.ticket ?? null,
    is_recorded: session.isRecorded,
    bytes_in: session.bytesIn,
    bytes_out: session.bytesOut,
    api_key: session.apiKey ?? null,
    recording: session.recording ?? null,
    suspended: suspendedOf(session),
    legal_hold: session.legalHold ? holdOf(session.legalHold, clock()) : null,
  })
  const suspendedOf = ({ id, end }: SessionRecord): Static<typeof View>['suspended'] => {
    const hold = end === undefined ? sessionControl.holdOf(id) : undefined
    return hold ? { reason: hold.reason, by: hold.by ?? null, since: timeText(hold.since) } : null
  }
  const found = async (params: unknown): Promise<SessionRecord> => {
    const session = await store.sessions.find((params as { ref: string }).ref.toUpperCase())
    if (!session) throw new ApiError('not_found')
    return session
  }

  app.get(
    '/sessions',
    {
      schema: {
        tags,
        summary: 'List: Sessions',
        description:
          'The newest first. With `recordings`: view also by what happened in them: `command~`, `file~`, `output~`.',
        querystring: Query,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 409, 503) },
      },
    },
    async (request, reply) => {
      const { status, ...query } = request.query
      const fields = fieldsOf(query, View)
      const filter = status === undefined ? {} : { status }
      const page = pageOf(query, request)
      const search = await withContents(page.search, request, deps)
      const listed = await store.sessions.list(filter, { ...page, ...(search && { search }) })
      return sendList(answers, request, reply, listed, (sessions) =>
        sessions.map((one) => pick(show(apiBase(request), one), fields)),
      )
    },
  )

  app.get(
    '/sessions/:ref',
    {
      schema: {
        tags,
        summary: 'Read one: Sessions',
        params,
        response: { 200: View, ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => show(apiBase(request), await found(request.params)),
  )

  app.get(
    '/sessions/:ref/events',
    {
      schema: {
        tags,
        summary: 'Events of a session',
        params,
        response: { 200: Type.Array(EventView), ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => {
      const session = await found(request.params)
      const rows = await store.audit.ofSession(session.id, MAX_EVENTS)
      return rows.map(shownEvent)
    },
  )

  app.post(
    '/sessions/:ref/kill',
    {
      schema: {
        tags,
        summary: 'End a running session',
        params,
        body: Kill,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const session = await found(request.params)
      const { name, key } = callerOf(request)
      const killed = await sessionControl.kill(session.id, request.body.reason, name, key?.keyName)
      if (!killed) throw new ApiError('not_running')
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/sessions/:ref/suspend',
    {
      schema: {
        tags,
        summary: 'Suspend the input of a running session',
        description:
          'Nothing that the user types, draws or uploads reaches the target; output goes on. A second call changes the reason.',
        params,
        body: Suspend,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 409, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      const session = await found(request.params)
      const isRunning = await sessionControl.suspend(session.id, request.body.reason, orderedBy(request))
      if (!isRunning) throw new ApiError('not_running')
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/sessions/:ref/resume',
    {
      schema: {
        tags,
        summary: 'Accept the input of a suspended session again',
        params,
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const session = await found(request.params)
      const result = await sessionControl.release(session.id, orderedBy(request))
      if (result !== 'released') throw new ApiError(result)
      return reply.code(204).send(null)
    },
  )
}

function orderedBy(request: ApiRequest): OrderedBy {
  const { name, key } = callerOf(request)
  return { name, ...(key && { apiKey: key.keyName }) }
}

/** `now` in milliseconds since the epoch. Omits a request for release that can no longer be confirmed. */
function holdOf({ by, since, reason, release }: LegalHold, now: number) {
  const wish = release && isFresh(release, now) ? release : undefined
  return {
    by,
    since: timeText(since),
    reason,
    release: wish
      ? {
          by: wish.by,
          since: timeText(wish.since),
          until: timeText(wish.since + RELEASE_MS),
          reason: wish.reason,
        }
      : null,
  }
}

/** Retention of sessions: legal hold, and the deletion of a recording. */
import { Type } from 'typebox'
import type { SessionRecord } from '../../model/objects.ts'
import { RELEASE_MS } from '../../recording-service/deletion.ts'
import { type ApiRequest, callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, titled } from '../schema/fields.ts'

const reason = Type.String({ minLength: 1, maxLength: 256, description: 'kept in the audit log' })
const Reason = titled('Reason', exact({ reason }))
const Query = Type.Object({ reason }, { additionalProperties: false })
const tags = ['Sessions']
const params = paramsSchema('/:ref')

const VERBS = {
  hold: {
    summary: 'Legal hold: keep the recording',
    description:
      'The recording is deleted neither by the retention nor by a request until it is released. A running session can be held too; one that is held already stays as it is.',
  },
  release: {
    summary: 'End of the legal hold',
    description:
      'From now on the retention deletes the recording when it is due: 204. If `recordings.hold_release` is `two`, the first user requests the release (202), and a second one confirms it by the same request within 24 hours; both have to sign in with a password, an API key does not count. A new hold cancels the request. Without a hold nothing happens.',
  },
} as const

export function registerRetention(app: Api, { deps }: Context): void {
  const { store, audit, deletion, clock } = deps

  const found = async (request: ApiRequest): Promise<SessionRecord> => {
    const { ref } = request.params as { ref: string }
    const session = await store.sessions.find(ref.toUpperCase())
    if (!session) throw new ApiError('not_found')
    return session
  }

  const given = { tags, params, body: Reason }
  const refusals = errorResponses(400, 401, 403, 404, 413, 415, 503)
  const holding = { ...given, ...VERBS.hold, response: { 204: Type.Null(), ...refusals } }
  const releasing = {
    ...given,
    ...VERBS.release,
    response: {
      202: Type.Null({ description: 'requested: a second user has to confirm it' }),
      204: Type.Null(),
      ...refusals,
    },
  }

  app.post('/sessions/:ref/hold', { schema: holding }, async (request, reply) => {
    const { id } = await found(request)
    const { reason } = request.body
    const caller = callerOf(request)
    await deletion.hold(id, { by: caller.name, since: clock(), reason }, () =>
      record(audit, request, 'recording.hold', { ...actor(caller), session: id, reason }),
    )
    return reply.code(204).send(null)
  })

  app.post('/sessions/:ref/release', { schema: releasing }, async (request, reply) => {
    const { id } = await found(request)
    const caller = callerOf(request)
    const { reason } = request.body
    // A key may act for many users, so it never counts as a second person.
    const isPerson = !caller.key && caller.user !== undefined
    const wish = { by: caller.name, userId: caller.user?.id ?? '', since: clock(), reason }
    const answer = await deletion.release(id, wish, isPerson, (what, before) =>
      what === 'asked'
        ? record(audit, request, 'recording.release_request', {
            ...actor(caller),
            session: id,
            duration: RELEASE_MS,
            reason,
          })
        : record(audit, request, 'recording.release', {
            ...actor(caller),
            session: id,
            ...(before && { object_type: 'user', object: before.by }),
            reason,
          }),
    )
    if (answer === 'person_required') throw new ApiError(answer)
    return reply.code(answer === 'asked' ? 202 : 204).send(null)
  })

  app.delete(
    '/sessions/:ref/recording',
    {
      schema: {
        tags,
        summary: 'Delete the recording',
        description:
          'First a tombstone (`recording.deleted`, with the reason and the digest) is written to the audit log and signed, then the recording is removed. The session stays listed.',
        params,
        querystring: Query,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const { id } = await found(request)
      const answer = await deletion.remove(id, {
        method: 'request',
        reason: request.query.reason,
        tell: (fields) =>
          record(audit, request, 'recording.deleted', { ...actor(callerOf(request)), ...fields }),
      })
      if (answer !== 'deleted') throw new ApiError(answer)
      return reply.code(204).send(null)
    },
  )
}

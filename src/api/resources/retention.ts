/** What is kept of sessions, and what is not: legal hold, and the deletion of a recording. */
import { Type } from 'typebox'
import type { SessionRecord } from '../../model/objects.ts'
import { type ApiRequest, callerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import type { Api } from '../deps.ts'
import { ApiError } from '../errors.ts'
import { actor, record } from '../events.ts'
import { errorResponses } from '../failures.ts'
import { exact, titled } from '../fields.ts'
import { paramsSchema } from '../paths.ts'

const reason = Type.String({ minLength: 1, maxLength: 256, description: 'kept in the audit log' })
const Reason = titled('Reason', exact({ reason }))
const Query = Type.Object({ reason }, { additionalProperties: false })
const tags = ['Sessions']
const params = paramsSchema('/:ref')

const VERBS = {
  hold: {
    code: 'recording.hold',
    summary: 'Legal hold: keep the recording',
    description:
      'The recording is deleted neither by the retention nor by a request until it is released. A running session can be held too; one that is held already stays as it is.',
  },
  release: {
    code: 'recording.release',
    summary: 'End of the legal hold',
    description:
      'From now on the retention deletes the recording when it is due. Without a hold nothing happens.',
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

  for (const verb of ['hold', 'release'] as const) {
    const { code, summary, description } = VERBS[verb]
    app.post(
      `/sessions/:ref/${verb}`,
      {
        schema: {
          tags,
          summary,
          description,
          params,
          body: Reason,
          response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
        },
      },
      async (request, reply) => {
        const { id } = await found(request)
        const why = request.body.reason
        const who = actor(callerOf(request))
        const hold = { by: callerOf(request).name, since: clock(), reason: why }
        await deletion.hold(id, verb === 'hold' ? hold : undefined, () =>
          record(audit, request, code, { ...who, session: id, reason: why }),
        )
        return reply.code(204).send(null)
      },
    )
  }

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

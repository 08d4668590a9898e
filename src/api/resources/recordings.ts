/** A session's recording, streamed as it is read. */
import type { FastifyReply } from 'fastify'
import type { RecordingFormat } from '../../keeper/exports.ts'
import { callerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import type { Api } from '../deps.ts'
import { ApiError } from '../errors.ts'
import { actor, record } from '../events.ts'
import { errorResponses } from '../failures.ts'
import { notJson } from '../fields.ts'
import { paramsSchema } from '../paths.ts'

const FORMATS: Readonly<Record<RecordingFormat, { suffix: string; type: string; summary: string }>> = {
  container: {
    suffix: '',
    type: 'application/octet-stream',
    summary: 'Recording as it is kept: the sealed container',
  },
  cast: { suffix: '.cast', type: 'application/x-asciicast', summary: 'Recording for asciinema' },
  txt: { suffix: '.txt', type: 'text/plain; charset=utf-8', summary: 'Recording as text' },
  json: { suffix: '.json', type: 'application/x-ndjson', summary: 'Recording as JSON lines, one a frame' },
}

export function registerRecordings(app: Api, { deps }: Context): void {
  const { store, recordings } = deps

  for (const [format, { suffix, type, summary }] of Object.entries(FORMATS) as [
    RecordingFormat,
    (typeof FORMATS)[RecordingFormat],
  ][]) {
    app.get(
      `/sessions/:ref/recording${suffix}`,
      {
        // what there is to show is known once a recording is open, which is for those who look at it, and is told
        exposeHeadRoute: false,
        schema: {
          tags: ['Sessions'],
          summary,
          params: paramsSchema('/:ref'),
          response: { 200: notJson(type, 'the recording'), ...errorResponses(401, 403, 404) },
        },
      },
      async (request, reply: FastifyReply) => {
        const session = await store.sessions.find((request.params as { ref: string }).ref.toUpperCase())
        const stream = session && (await recordings?.open(session.id, format))
        if (!session || !stream) throw new ApiError('not_found')
        const viewed = { ...actor(callerOf(request)), session: session.id, method: format }
        await record(deps.audit, request, 'recording.view', viewed).catch((error: unknown) => {
          stream.destroy()
          throw error
        })
        // text that a target wrote: a browser saves it and never renders it
        reply.header('content-disposition', `attachment; filename="${session.id}${suffix || '.recording'}"`)
        return reply.type(type).send(stream)
      },
    )
  }
}

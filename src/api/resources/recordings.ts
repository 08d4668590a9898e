/** A session's recording, streamed as it is read. */
import type { FastifyReply } from 'fastify'
import { Type } from 'typebox'
import { RecordingError } from '../../../recordings/container/format/error.ts'
import { type ExportChoice, FfmpegMissing, GraphicSession } from '../../../recordings/show/export/choices.ts'
import { TooManyExports } from '../../recording-service/exporting/threads.ts'
import { type RecordingFormat, StillRecording } from '../../recording-service/exports.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { notJson, oneOf } from '../schema/fields.ts'

interface Form {
  suffix: string
  type: string
  summary: string
  /** Kind of content: the file, output of channels, their frames, one channel, or one moment of a channel. */
  of: 'session' | 'output' | 'frames' | 'channel' | 'moment'
}

const FORMATS: Readonly<Record<RecordingFormat, Form>> = {
  container: {
    suffix: '',
    type: 'application/octet-stream',
    summary: 'Recording as it is kept: the sealed container',
    of: 'session',
  },
  cast: {
    suffix: '.cast',
    type: 'application/x-asciicast',
    summary: 'Recording for asciinema',
    of: 'output',
  },
  cast3: {
    suffix: '.cast3',
    type: 'application/x-asciicast',
    summary: 'Recording for asciinema 3',
    of: 'output',
  },
  ttyrec: {
    suffix: '.ttyrec',
    type: 'application/x-ttyrec',
    summary: 'Recording for ttyplay',
    of: 'output',
  },
  txt: { suffix: '.txt', type: 'text/plain; charset=utf-8', summary: 'Recording as text', of: 'output' },
  json: {
    suffix: '.json',
    type: 'application/x-ndjson',
    summary: 'Recording as JSON lines, one a frame',
    of: 'frames',
  },
  html: {
    suffix: '.html',
    type: 'text/html; charset=utf-8',
    summary: 'Recording as a page with a player, which needs no network',
    of: 'channel',
  },
  png: { suffix: '.png', type: 'image/png', summary: 'The screen at a moment', of: 'moment' },
  mp4: { suffix: '.mp4', type: 'video/mp4', summary: 'Recording as video, by ffmpeg', of: 'channel' },
  webm: { suffix: '.webm', type: 'video/webm', summary: 'Recording as video, by ffmpeg', of: 'channel' },
}

const oneChannel = Type.Optional(
  Type.Integer({
    minimum: 0,
    maximum: 0xffff_ffff,
    description: 'which channel; without it the first with a terminal, else the first',
  }),
)
const channel = Type.Optional(
  Type.String({
    pattern: '^(all|\\d{1,9})$',
    description: 'which channel, or `all`; without it the first with a terminal, else the first',
  }),
)
const raw = Type.Optional(
  oneOf(
    ['true', 'false'],
    'the output as it was, with all that it does to a terminal: of one channel, and nothing to look at',
  ),
)
const at = Type.Optional(
  Type.Number({
    minimum: 0,
    maximum: 1e9,
    description: 'seconds since the recording began; without it the end',
  }),
)
const QUERIES = {
  session: Type.Object({}, { additionalProperties: false }),
  output: Type.Object({ channel, raw }, { additionalProperties: false }),
  frames: Type.Object({ channel }, { additionalProperties: false }),
  channel: Type.Object({ channel: oneChannel }, { additionalProperties: false }),
  moment: Type.Object({ channel: oneChannel, at }, { additionalProperties: false }),
}

export function registerRecordings(app: Api, { deps }: Context): void {
  const { store, recordings } = deps

  for (const [format, { suffix, type, summary, of }] of Object.entries(FORMATS) as [
    RecordingFormat,
    Form,
  ][]) {
    app.get(
      `/sessions/:ref/recording${suffix}`,
      {
        // A HEAD request would have to open the recording, which counts as viewing it and is audited.
        exposeHeadRoute: false,
        schema: {
          tags: ['Sessions'],
          summary,
          params: paramsSchema('/:ref'),
          querystring: QUERIES[of],
          response: {
            200: notJson(type, 'the recording'),
            ...errorResponses(400, 401, 403, 404, 409, 501, 503),
          },
        },
      },
      async (request, reply: FastifyReply) => {
        const session = await store.sessions.find((request.params as { ref: string }).ref.toUpperCase())
        const choice = choiceOf(request.query as Query)
        if (choice.raw && choice.channel === 'all') {
          throw new ApiError('invalid_field', [
            { field: 'channel', message: 'expected one channel of which the output is wanted raw, not all' },
          ])
        }
        const gone = new AbortController()
        reply.raw.once('close', () => gone.abort())
        const stream =
          session &&
          (await recordings?.open(session.id, format, choice, gone.signal).catch((error: unknown) => {
            // No client reads the answer.
            throw gone.signal.aborted ? new ApiError('request_timeout') : answerTo(error)
          }))
        if (!session || !stream) throw new ApiError('not_found')
        const viewed = { ...actor(callerOf(request)), session: session.id, method: format }
        await record(deps.audit, request, 'recording.view', viewed).catch((error: unknown) => {
          stream.destroy()
          throw error
        })
        // Text from a target: a browser saves it and never renders it.
        const name = `${session.id}${suffix.replace('.cast3', '.cast') || '.recording'}`
        reply.header('content-disposition', `attachment; filename="${name}"`)
        if (stream.shown) {
          reply.header('recording-channel', String(stream.shown.channel))
          reply.header('recording-channels', String(stream.shown.count))
        }
        return reply.type(type).send(stream)
      },
    )
  }
}

interface Query {
  channel?: number | string
  at?: number
  raw?: 'true' | 'false'
}

function choiceOf({ channel, at, raw }: Query): Omit<ExportChoice, 'format'> {
  return {
    ...(channel !== undefined && { channel: channel === 'all' ? 'all' : Number(channel) }),
    ...(at !== undefined && { at }),
    ...(raw === 'true' && { raw: true }),
  }
}

function answerTo(error: unknown): unknown {
  if (error instanceof StillRecording) return new ApiError('still_recording')
  if (error instanceof GraphicSession) return new ApiError('graphic_session')
  if (error instanceof FfmpegMissing) return new ApiError('ffmpeg_missing')
  if (error instanceof TooManyExports) return new ApiError('busy')
  if (error instanceof RecordingError && error.code === 'wrong_key') return new ApiError('sealed_to_auditors')
  return error
}

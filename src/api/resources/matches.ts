/** Places in a session that a search has found: lines with their seconds. */
import { Type } from 'typebox'
import { MAX_EXPRESSION, SearchError } from '../../search/grammar.ts'
import { CONTENT_FIELDS } from '../../search/words.ts'
import type { Context } from '../access/context.ts'
import { contentSearchOf } from '../collection/contents.ts'
import { listQuery } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { searchOf } from '../collection/search.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { MAX_DEFAULT_PAGE } from '../http/limits.ts'
import { exact, oneOf, titled } from '../schema/fields.ts'

const View = titled(
  'Match',
  exact({
    time: Type.Number({ description: 'seconds since the session began: where to look in its recording' }),
    channel: Type.Union([Type.Integer(), Type.Null()], {
      description: 'channel of the recording; null if the line comes from an event',
    }),
    field: oneOf(CONTENT_FIELDS, 'what was searched'),
    excerpt: Type.String({ description: 'of the line' }),
  }),
)
const { limit, offset } = listQuery
const Query = Type.Object(
  {
    q: Type.Optional(
      Type.String({
        maxLength: MAX_EXPRESSION,
        description: 'an expression with command~, file~ or output~; needed',
      }),
    ),
    limit,
    offset,
  },
  { additionalProperties: false },
)

export function registerMatches(app: Api, { deps }: Context): void {
  app.get(
    '/sessions/:ref/matches',
    {
      schema: {
        tags: ['Sessions'],
        summary: 'Lines of a session that a search finds',
        description:
          'Lines that match one of the comparisons with `command`, `file` or `output` in `q`, in the order of time; the first 1000 of each comparison. The header `X-Indexed` says what is in the index: `full`, `partial` (more output than is kept of a session), or `events` (commands and files, while the session runs and where only auditors open its recording).',
        params: paramsSchema('/:ref'),
        querystring: Query,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403, 404, 409, 503) },
      },
    },
    async (request, reply) => {
      const session = await deps.store.sessions.find((request.params as { ref: string }).ref.toUpperCase())
      if (!session) throw new ApiError('not_found')
      const search = searchOf(request.query.q, request)
      const content = search && (await contentSearchOf(search, request, deps, session.id))
      if (!content) throw new SearchError('form', 0, `a comparison with ${CONTENT_FIELDS.join(', ')}`, 'none')
      const { index } = content.contents
      const tests = content.asked.map(({ test }) => test)
      const [matches, extent] = await Promise.all([
        index.matches(session.id, tests),
        index.extent(session.id),
      ])
      const { limit = MAX_DEFAULT_PAGE, offset = 0 } = request.query
      const page = matches.slice(offset, limit === -1 ? undefined : offset + limit)
      reply.header('x-total-count', matches.length).header('x-indexed', extent)
      return page.map(({ at, channel, field, excerpt }) => ({
        time: at / 1000,
        channel: channel ?? null,
        field,
        excerpt,
      }))
    },
  )
}

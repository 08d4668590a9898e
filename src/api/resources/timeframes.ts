/** Timeframes, as far as they exist: all times are allowed. */
import { Type } from 'typebox'
import { nameKey } from '../../model/names.ts'
import type { Fields } from '../../search/fields.ts'
import { fieldsOf, ListQuery, pageOf, pick } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { pageOfAll } from '../collection/search.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { exact, shown, titled } from '../schema/fields.ts'

const Timeframe = titled(
  'Timeframe',
  exact({
    ...shown,
    timeframe_name: Type.String(),
    description: Type.String(),
  }),
)
export const TIMEFRAME_FIELDS = {
  timeframe_name: { kind: 'name' },
  description: { kind: 'text' },
  id: { kind: 'id' },
} as const satisfies Fields
const ALL_THE_TIME = {
  id: '00000000000000000000000401',
  timeframe_name: 'allthetime',
  description: 'every day, at every hour',
}

export function registerTimeframes(app: Api): void {
  const tags = ['Timeframes']
  app.get(
    '/timeframes',
    {
      schema: {
        tags,
        summary: 'List: Timeframes',
        description: 'The one from the factory. Others cannot be made yet.',
        querystring: ListQuery,
        response: { 200: Type.Array(Timeframe), ...errorResponses(400, 401, 403) },
      },
    },
    async (request, reply) => {
      const fields = fieldsOf(request.query, Timeframe)
      const all = [{ ...ALL_THE_TIME, url: `${apiBase(request)}/timeframes/${ALL_THE_TIME.id}` }]
      const { items, total } = pageOfAll(all, pageOf(request.query, request), TIMEFRAME_FIELDS, (one) => one)
      reply.header('x-total-count', total)
      return reply.send(items.map((one) => pick(one, fields)) as never)
    },
  )
  app.get(
    '/timeframes/:ref',
    {
      schema: {
        tags,
        summary: 'Read one: Timeframes',
        params: paramsSchema('/:ref'),
        response: { 200: Timeframe, ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => {
      const key = nameKey((request.params as { ref: string }).ref)
      if (key !== ALL_THE_TIME.id && key !== ALL_THE_TIME.timeframe_name) throw new ApiError('not_found')
      return { ...ALL_THE_TIME, url: `${apiBase(request)}/timeframes/${ALL_THE_TIME.id}` }
    },
  )
}

/** Approvals and timeframes, as far as they go: nothing asks for an approval yet, and all times are allowed. */
import { Type } from 'typebox'
import { nameKey } from '../../model/names.ts'
import { paramsSchema } from '../collection.ts'
import type { Api } from '../deps.ts'
import { ApiError } from '../errors.ts'
import { errorResponses } from '../failures.ts'
import { exact, shown } from '../fields.ts'
import { apiBase } from '../version.ts'

const Approval = exact({ ...shown })
const Timeframe = exact({
  ...shown,
  timeframe_name: Type.String(),
  description: Type.String(),
})
const ALL_THE_TIME = {
  id: '00000000000000000000000401',
  timeframe_name: 'allthetime',
  description: 'every day, at every hour',
}

export function registerApprovals(app: Api): void {
  const tags = ['Approvals']
  const params = paramsSchema('/:ref')
  const description = 'Not available yet: no rule asks for an approval.'
  app.get(
    '/approvals',
    {
      schema: {
        tags,
        summary: 'List: Approvals',
        description: 'An empty list: no rule asks for an approval yet.',
        response: { 200: Type.Array(Approval), ...errorResponses(401, 403) },
      },
    },
    async (_request, reply) => reply.header('x-total-count', 0).send([]),
  )
  app.get(
    '/approvals/:ref',
    {
      schema: { tags, summary: 'Read one: Approvals', params, response: errorResponses(401, 403, 404) },
    },
    async () => {
      throw new ApiError('not_found')
    },
  )
  const refuse = async () => {
    throw new ApiError('not_available_yet')
  }
  const refused = (summary: string) => ({
    preValidation: refuse,
    schema: { tags, summary, description, response: errorResponses(400, 401, 403) },
  })
  app.post('/approvals', refused('Ask for an approval'), refuse)
  for (const answer of ['accept', 'reject', 'cancel'] as const) {
    app.post(`/approvals/:ref/${answer}`, refused(`Approvals: ${answer}`), refuse)
  }
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
        response: { 200: Type.Array(Timeframe), ...errorResponses(401, 403) },
      },
    },
    async (request, reply) =>
      reply
        .header('x-total-count', 1)
        .send([{ ...ALL_THE_TIME, url: `${apiBase(request)}/timeframes/${ALL_THE_TIME.id}` }]),
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

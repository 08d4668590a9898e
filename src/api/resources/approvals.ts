/** Approvals, as far as they exist: none is ever requested yet. */
import { Type } from 'typebox'
import type { Fields } from '../../search/fields.ts'
import { fieldsOf, ListQuery, pageOf } from '../collection/listing.ts'
import { paramsSchema } from '../collection/paths.ts'
import { pageOfAll } from '../collection/search.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { exact, shown, titled } from '../schema/fields.ts'

const Approval = titled('Approval', exact({ ...shown }))
export const APPROVAL_FIELDS = { id: { kind: 'id' } } as const satisfies Fields

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
        querystring: ListQuery,
        response: { 200: Type.Array(Approval), ...errorResponses(400, 401, 403) },
      },
    },
    async (request, reply) => {
      fieldsOf(request.query, Approval)
      const { items, total } = pageOfAll([], pageOf(request.query, request), APPROVAL_FIELDS, (one) => one)
      return reply.header('x-total-count', total).send(items)
    },
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

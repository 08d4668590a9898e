/**
 * The SCIM 2.0 service (RFC 7644) at `/scim/v2`. It has errors, a media type and callers of its own: providers of identities,
 * each by a token that reaches the persons of one domain.
 */
import type { FastifyRequest } from 'fastify'
import type { Context } from '../access/context.ts'
import type { Api, BodyParser, UntypedApi } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { scimCallerOf } from './caller.ts'
import { answerScimError } from './changes.ts'
import { registerScimDiscovery } from './discovery.ts'
import { registerScimGroups } from './groups.ts'
import { registerScimUsers } from './users.ts'

/** Requests of one token at a time. */
const MAX_AT_ONCE = 16

/** Returns the URL of the API's routes; `/scim/v2` needs no prefix. */
export function withScimPrefix(url: string): string {
  return /^\/scim\/v2(?=[/?]|$)/.test(url) ? `/api${url}` : url
}

export async function registerScim(api: Api, context: Context, parse: BodyParser): Promise<void> {
  const running = new Map<string, number>()
  const begin = (request: FastifyRequest, onEnd: (end: () => void) => void) => {
    const { id } = scimCallerOf(request).token
    const count = running.get(id) ?? 0
    if (count >= MAX_AT_ONCE) throw new ApiError('too_many_connections')
    running.set(id, count + 1)
    onEnd(() => {
      const left = (running.get(id) ?? 1) - 1
      if (left === 0) running.delete(id)
      else running.set(id, left)
    })
  }
  await api.register(async (scope) => {
    scope.setErrorHandler(answerScimError)
    scope.addContentTypeParser('application/scim+json', { parseAs: 'string' }, parse)
    scope.addHook('preParsing', async (request, reply) =>
      begin(request, (end) => void reply.raw.once('close', end)),
    )
    const app = scope as unknown as UntypedApi
    registerScimUsers(app, context)
    registerScimGroups(app, context)
    registerScimDiscovery(app, context)
  })
}

/** `/users/USER/securitykeys`: second factors in browsers, which users add on their account's page. */
import { Type } from 'typebox'
import { reaches } from '../../model/profiles.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { meantUser } from '../access/meant-user.ts'
import { rightsOf } from '../access/profile-rights.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { exact, shown, timeOrNull, timeText, titled } from '../schema/fields.ts'
import { refuseBeyondOwn } from './users.ts'

const PATH = '/users/:ref/securitykeys'
const View = titled(
  'SecurityKey',
  exact({
    ...shown,
    name: Type.String(),
    created: Type.String({ format: 'date-time' }),
    last_use: timeOrNull('null: not used yet'),
  }),
)
const tags = ['Users']

export function registerSecurityKeys(app: Api, { deps }: Context): void {
  const { audit, securityKeys, store } = deps

  app.get(
    PATH,
    {
      schema: {
        tags,
        summary: 'List the security keys of a user',
        description:
          "One's own, or any with `users: view`. Users add them on the page `/account`: only a browser can.",
        params: paramsSchema(PATH),
        response: { 200: Type.Array(View), ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => {
      const user = await meantUser(store, request, reaches(callerOf(request).rights.users, 'view'))
      return (await securityKeys.list(user.id)).map(({ id, name, created, lastUse }) => ({
        id,
        url: `${apiBase(request)}/users/${user.id}/securitykeys/${id}`,
        name,
        created: timeText(created),
        last_use: lastUse === undefined ? null : timeText(lastUse),
      }))
    },
  )

  app.delete(
    `${PATH}/:key`,
    {
      schema: {
        tags,
        summary: 'Remove a security key of a user',
        description:
          'Nobody removes their own here, as a stolen session could: the page `/account` asks for a proof. `DELETE /users/{ref}/totp` removes all factors.',
        params: paramsSchema(`${PATH}/:key`),
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const user = await meantUser(store, request, true)
      const { key: id } = request.params as { key: string }
      refuseBeyondOwn(request, await rightsOf(store, user.profile))
      const caller = callerOf(request)
      if (caller.user?.id === user.id) throw new ApiError('forbidden')
      const key = (await securityKeys.list(user.id)).find((one) => one.id === id.toUpperCase())
      if (!key) throw new ApiError('not_found')
      const about = { object_type: 'security key', object: `${user.userName} ${key.name}` }
      await record(audit, request, 'factor.key_remove', { ...actor(caller), ...about })
      await securityKeys.remove(user.id, key.id)
      return reply.code(204).send(null)
    },
  )
}

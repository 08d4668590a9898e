/** `/signins`: the caller's own sign-ins by cookie. */
import { Type } from 'typebox'
import { callerOf, userOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { endOwnSignIn, endOwnSignIns } from '../access/own-sign-ins.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { exact, shown, timeText, titled } from '../schema/fields.ts'

const View = titled(
  'SignIn',
  exact({
    ...shown,
    begin: Type.String({ format: 'date-time' }),
    last_use: Type.String({ format: 'date-time', description: 'noted once a minute' }),
    client_ip: Type.String({ description: 'address of the sign-in' }),
    method: Type.String({ description: 'as in the event auth.success' }),
    agent: Type.String({ description: 'what the client called itself' }),
    is_current: Type.Boolean({ description: 'the sign-in of this request' }),
  }),
)
const End = titled(
  'SignInsEnd',
  exact({
    with_sessions: Type.Optional(
      Type.Boolean({ description: 'end the running sessions of the user, too; default: false' }),
    ),
  }),
)
const tags = ['Session']

export function registerOwnSignIns(app: Api, context: Context): void {
  const { deps, signIns } = context

  app.get(
    '/signins',
    {
      schema: {
        tags,
        summary: 'List your sign-ins',
        description: 'Those by cookie that count, the newest first.',
        response: { 200: Type.Array(View), ...errorResponses(401, 403) },
      },
    },
    async (request) => {
      const { id: userId } = userOf(request)
      const { signIn } = callerOf(request)
      return (await signIns.ofUser(userId, deps.clock())).map(({ id, begin, lastUse, client }) => ({
        id,
        url: `${apiBase(request)}/signins/${id}`,
        begin: timeText(begin),
        last_use: timeText(lastUse),
        client_ip: client?.address ?? '',
        method: client?.method ?? '',
        agent: client?.agent ?? '',
        is_current: id === signIn,
      }))
    },
  )

  app.delete(
    '/signins/:ref',
    {
      schema: {
        tags,
        summary: 'End one of your sign-ins',
        params: paramsSchema('/signins/:ref'),
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const { ref } = request.params as { ref: string }
      if (!(await endOwnSignIn(context, request, ref.toUpperCase()))) throw new ApiError('not_found')
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/signins/end',
    {
      schema: {
        tags,
        summary: 'Sign out everywhere',
        description:
          'Ends all your sign-ins by cookie, this one too. Running sessions go on unless with_sessions is set.',
        body: End,
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 413, 415, 503) },
      },
    },
    async (request, reply) => {
      await endOwnSignIns(context, request, { withSessions: request.body.with_sessions ?? false })
      return reply.code(204).send(null)
    },
  )
}

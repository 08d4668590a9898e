/** Watching a session while it runs. */
import { Type } from 'typebox'
import type { EventFields } from '../../audit/events/fields.ts'
import type { Watching } from '../../gate/live.ts'
import type { SessionRecord } from '../../model/objects.ts'
import { authenticate } from '../access/authenticate.ts'
import { callerOf } from '../access/caller.ts'
import type { Context } from '../access/context.ts'
import { actor, record } from '../access/events.ts'
import { needOf, satisfies } from '../access/guard.ts'
import { WatchingSocket } from '../access/watching.ts'
import { paramsSchema } from '../collection/paths.ts'
import type { Api } from '../http/deps.ts'
import { ApiError, type ErrorCode } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'

const REFUSALS: Readonly<Record<Exclude<Watching['result'], 'watching'>, ErrorCode>> = {
  not_running: 'not_running',
  not_recorded: 'not_recorded',
  too_many: 'too_many_watchers',
  runs_elsewhere: 'runs_elsewhere',
}
const WATCH = '/sessions/:ref/live'
const KILL = '/sessions/:ref/kill'

export function registerLive(app: Api, context: Context): void {
  const { deps, webSockets, watchers } = context
  const { store, sessionControl } = deps

  app.get(
    WATCH,
    {
      exposeHeadRoute: false,
      schema: {
        tags: ['Sessions'],
        summary: 'Watch a running session',
        description:
          'A WebSocket (RFC 6455). Text messages, each a JSON object: `header`, `keyframe`, then what happens as in `recording.json`, and `end`. A client may send `{"type":"kill","reason":"…"}`. See docs/api.md.',
        params: paramsSchema('/:ref'),
        response: {
          101: Type.Null({ description: 'the WebSocket is open' }),
          ...errorResponses(400, 401, 403, 404, 409, 426, 503),
        },
      },
    },
    async (request, reply) => {
      const session = await store.sessions.find((request.params as { ref: string }).ref.toUpperCase())
      if (!session) throw new ApiError('not_found')
      const refusal = sessionControl.watchRefusal(session.id)
      if (refusal) throw new ApiError(REFUSALS[refusal])
      const accept = webSockets.prepare(request, reply)
      const caller = callerOf(request)
      const watched = { ...actor(caller), ...watchedFields(session) }
      await record(deps.audit, request, 'watch.begin', watched)
      const begin = deps.clock()
      const socket = await accept()
      let watching: Watching | undefined
      const ended = (reason: string | undefined) => {
        if (watching?.result === 'watching') watching.stop()
        const fields = { ...watched, duration: deps.clock() - begin, ...(reason !== undefined && { reason }) }
        // Its failure is logged; there is nothing left to refuse.
        record(deps.audit, request, 'watch.end', fields).catch(() => undefined)
      }
      if (!socket) {
        ended('the client has gone')
        return
      }
      const watcher = new WatchingSocket(caller.name, {
        socket,
        userId: caller.key ? undefined : caller.user?.id,
        onLeaving: () => {
          if (watching?.result === 'watching') watching.stop()
        },
        caller: () => authenticate(context, request),
        mayWatch: ({ rights }) => satisfies(rights, needOf('GET', WATCH)),
        mayKill: ({ rights }) => satisfies(rights, needOf('POST', KILL)),
        kill: (reason, { name, key }) => sessionControl.kill(session.id, reason, name, key?.keyName),
        onClosed: (reason) => {
          watchers.delete(watcher)
          ended(reason)
        },
      })
      watchers.add(watcher)
      watching = sessionControl.watch(session.id, watcher)
      if (watching.result !== 'watching') watcher.close('refused', watching.result)
    },
  )
}

/** Returns the event fields of the watched session. */
function watchedFields(session: SessionRecord): EventFields {
  const { id, user, protocol, account, domain, device, service } = session
  return { session: id, object_type: 'user', object: user, protocol, account, domain, device, service }
}

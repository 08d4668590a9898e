/** What targets showed as their host keys: to accept, or to forget. */
import { type Static, Type } from 'typebox'
import type { HostKey } from '../../model/objects.ts'
import { callerOf } from '../caller.ts'
import type { Context } from '../context.ts'
import type { Api } from '../deps.ts'
import { ApiError } from '../errors.ts'
import { actor, changesOf, changesText, record } from '../events.ts'
import { errorResponses } from '../failures.ts'
import { exact, oneOf, shown, titled } from '../fields.ts'
import { fieldsOf, ListQuery, pageOf, pick } from '../listing.ts'
import { paramsSchema } from '../paths.ts'
import { Names } from '../references.ts'
import { apiBase } from '../version.ts'

const state = oneOf(
  ['accepted', 'offered'] as const,
  '`accepted` is trusted; `offered` was shown and refused',
)
const View = titled(
  'HostKey',
  exact({
    ...shown,
    device: Type.String(),
    service: Type.String(),
    key_type: Type.String({ examples: ['ssh-ed25519'] }),
    fingerprint: Type.String({ description: 'SHA256:…, as OpenSSH shows it' }),
    key: Type.String({ description: 'base64 of the key (RFC 4253 6.6)' }),
    first_seen: Type.String({ format: 'date-time' }),
    state,
  }),
)
const Update = exact({ state: oneOf(['accepted'] as const, 'trust this key from now on') })
const tags = ['Host keys']

export function registerHostKeys(app: Api, { deps }: Context): void {
  const { store, audit } = deps
  const params = paramsSchema('/:ref')

  const show = async (base: string, key: HostKey, names: Names): Promise<Static<typeof View>> => ({
    id: key.id,
    url: `${base}/hostkeys/${key.id}`,
    device: await names.device(key.deviceId),
    service: await names.service(key.serviceId),
    key_type: key.keyType,
    fingerprint: key.fingerprint,
    key: key.key,
    first_seen: new Date(key.firstSeen).toISOString(),
    state: key.state,
  })
  const found = async (params: unknown): Promise<HostKey> => {
    const key = await store.hostKeys.find((params as { ref: string }).ref.toUpperCase())
    if (!key) throw new ApiError('not_found')
    return key
  }
  const label = (view: Static<typeof View>) => `${view.device}:${view.service} ${view.fingerprint}`

  app.get(
    '/hostkeys',
    {
      schema: {
        tags,
        summary: 'List: Host keys',
        querystring: ListQuery,
        response: { 200: Type.Array(View), ...errorResponses(400, 401, 403) },
      },
    },
    async (request, reply) => {
      const fields = fieldsOf(request.query, View)
      const { items, total } = await store.hostKeys.list(pageOf(request.query, request))
      const names = new Names(store)
      const views = await Promise.all(items.map((key) => show(apiBase(request), key, names)))
      reply.header('x-total-count', total)
      return reply.send(views.map((view) => pick(view, fields)) as never)
    },
  )

  app.get(
    '/hostkeys/:ref',
    {
      schema: {
        tags,
        summary: 'Read one: Host keys',
        params,
        response: { 200: View, ...errorResponses(401, 403, 404) },
      },
    },
    async (request) => show(apiBase(request), await found(request.params), new Names(store)),
  )

  app.put(
    '/hostkeys/:ref',
    {
      schema: {
        tags,
        summary: 'Accept a host key',
        params,
        body: Update,
        response: { 200: View, ...errorResponses(400, 401, 403, 404, 413, 415, 503) },
      },
    },
    async (request) => {
      const key = await found(request.params)
      const view = await show(apiBase(request), key, new Names(store))
      const changes = changesOf(view, request.body, [])
      if (changes.size === 0) return view
      const fields = { object_type: 'hostkey', object: label(view), changes: changesText(changes) }
      await record(audit, request, 'object.update', { ...actor(callerOf(request)), ...fields })
      const accepted = await store.hostKeys.update(key.id, { state: request.body.state })
      return show(apiBase(request), accepted, new Names(store))
    },
  )

  app.delete(
    '/hostkeys/:ref',
    {
      schema: {
        tags,
        summary: 'Forget a host key',
        description: 'The next key that the target shows counts as seen for the first time.',
        params,
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 503) },
      },
    },
    async (request, reply) => {
      const key = await found(request.params)
      const view = await show(apiBase(request), key, new Names(store))
      const fields = { object_type: 'hostkey', object: label(view) }
      await record(audit, request, 'object.delete', { ...actor(callerOf(request)), ...fields })
      await store.hostKeys.remove(key.id)
      return reply.code(204).send(null)
    },
  )
}

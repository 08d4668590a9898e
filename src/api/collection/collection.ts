/**
 * The routes of a collection, made from the description of its resource. Every change is planned first, which
 * checks all that can be checked, then audited, then made. So every change made is in the audit; if it fails
 * after its event, a second event reports the failure.
 */
import type { FastifyRequest } from 'fastify'
import { type Static, type TObject, Type } from 'typebox'
import { ChangedError } from '../../store/engine/errors.ts'
import { sendList } from '../access/answers.ts'
import { callerOf } from '../access/caller.ts'
import type { Context, Shown } from '../access/context.ts'
import { actor, type Changes, changesOf, changesText, record } from '../access/events.ts'
import type { Api, UntypedApi } from '../http/deps.ts'
import { ApiError } from '../http/errors.ts'
import { etagOf, ifMatch, refuseUnmatched } from '../http/etag.ts'
import { errorCodeOf, errorResponses } from '../http/failures.ts'
import { apiBase } from '../http/version.ts'
import { titled } from '../schema/fields.ts'
import { refuseLaterFields } from '../schema/later.ts'
import { idempotencyKey, madeOnce } from './idempotency.ts'
import { fieldsOf, ListQuery, pageOf, pick } from './listing.ts'
import { type Params, paramsSchema, pathOf } from './paths.ts'
import { Names } from './references.ts'
import { announced, type Item, type Plan, type PlannedEvent, type ResourceOfCollection } from './resource.ts'
import { reviewed } from './review.ts'

export function registerCollection<T extends Item, C extends TObject, U extends TObject, V extends TObject>(
  api: Api,
  context: Context,
  resource: ResourceOfCollection<T, C, U, V>,
): void {
  const app = api as unknown as UntypedApi
  const { deps } = context
  const { path, type } = resource
  // Widened, because the routes need only the schemas' text.
  const title = `${type[0]!.toUpperCase()}${type.slice(1)}`
  const view: TObject = titled(title, resource.view)
  const tags = [resource.title]
  const itemParams = paramsSchema(`${path}/:ref`)

  const shownIn = async (
    request: FastifyRequest,
    object: T,
    names = new Names(deps.store),
  ): Promise<Shown & Record<string, unknown>> => ({
    id: object.id,
    url: `${apiBase(request)}${pathOf(resource.home ?? path, { ...(request.params as Params), ...resource.parents?.(object) })}/${object.id}`,
    ...(await resource.show(object, names)),
  })
  const tagOf = (shown: Shown, object: T): string => {
    const lasting = Object.entries(shown).filter(([field]) => !resource.once?.includes(field))
    return etagOf(Object.fromEntries(lasting), object.secretRevision)
  }
  const found = async (request: FastifyRequest): Promise<T> => {
    const object = await resource.find(request, (request.params as { ref: string }).ref)
    if (!object) throw new ApiError('not_found')
    return object
  }
  /**
   * Changes the object in the path, after earlier changes of it, and only if it is as the client has read it.
   */
  const inTurn = async <R>(
    request: FastifyRequest,
    change: (old: T, before: Shown & Record<string, unknown>) => Promise<R>,
  ): Promise<R> => {
    const { id } = await found(request)
    return context.turns.run(`${type} ${id}`, async () => {
      const old = await found(request)
      const before = await shownIn(request, old)
      const condition = request.headers['if-match']
      refuseUnmatched(condition, tagOf(before, old))
      try {
        return await change(old, before)
      } catch (error) {
        // Another process was quicker.
        if (condition !== undefined && error instanceof ChangedError)
          throw new ApiError('precondition_failed')
        throw error
      }
    })
  }
  const carryOut = async <R>(
    request: FastifyRequest,
    code: 'object.create' | 'object.update' | 'object.delete',
    object: string,
    changes: Changes,
    plan: Plan<R>,
  ): Promise<R> => {
    const fields = {
      ...actor(callerOf(request)),
      object_type: type,
      object,
      ...(changes.size > 0 ? { changes: changesText(changes) } : {}),
    }
    const others = (plan.events ?? []).map((event) => ({
      ...event,
      fields: { ...actor(callerOf(request)), ...event.fields },
    }))
    const told: PlannedEvent[] = []
    try {
      for (const event of [{ code, fields }, ...others]) {
        await record(deps.audit, request, event.code, event.fields)
        told.push(event)
      }
      const done = await plan()
      await reviewed(context, request)
      return done
    } catch (error) {
      const failure = { result: 'failure', reason: errorCodeOf(error) } as const
      for (const event of told) await record(deps.audit, request, event.code, { ...event.fields, ...failure })
      throw error
    }
  }
  const refuseLater = async (request: FastifyRequest) => refuseLaterFields(type, request.body)

  app.get(
    path,
    {
      schema: {
        tags,
        summary: `List: ${resource.title}`,
        description: resource.description,
        ...(path.includes(':') ? { params: paramsSchema(path) } : {}),
        querystring: ListQuery,
        response: { 200: Type.Array(view), ...errorResponses(400, 401, 403, 404) },
      },
    },
    async (request, reply) => {
      const query = request.query as ListQuery
      const fields = fieldsOf(query, view)
      const listed = await resource.list(request, pageOf(query, request))
      return sendList(context.answers, request, reply, listed, async (items) => {
        const names = new Names(deps.store)
        const views = await Promise.all(items.map((item) => shownIn(request, item, names)))
        return views.map((one) => pick(one, fields))
      })
    },
  )

  app.get(
    `${path}/:ref`,
    {
      schema: {
        tags,
        summary: `Read one: ${resource.title}`,
        params: itemParams,
        response: { 200: view, ...errorResponses(401, 403, 404, 409) },
      },
    },
    async (request, reply) => {
      const object = await found(request)
      const shown = await shownIn(request, object)
      return reply.header('etag', tagOf(shown, object)).send(shown)
    },
  )

  const { create } = resource
  if (create)
    app.post(
      path,
      {
        preValidation: refuseLater,
        schema: {
          tags,
          summary: `Create: ${resource.title}`,
          ...(path.includes(':') ? { params: paramsSchema(path) } : {}),
          body: titled(`New${title}`, create.schema) as TObject,
          headers: idempotencyKey,
          response: { 201: view, ...errorResponses(400, 401, 403, 404, 409, 413, 415, 422, 503) },
        },
      },
      (request, reply) =>
        madeOnce(context, request, reply, async () => {
          const body = request.body as Static<C>
          const plan = await create.plan(body, request)
          const values = body as Record<string, unknown>
          const changes = changesOf({}, values, resource.secrets)
          const label = plan.label ?? resource.label(values)
          const object = await carryOut(request, 'object.create', label, changes, plan)
          const shown = await shownIn(request, object)
          return { body: shown, etag: tagOf(shown, object), once: resource.once ?? [] }
        }),
    )

  const { update } = resource
  if (update)
    app.put(
      `${path}/:ref`,
      {
        preValidation: refuseLater,
        schema: {
          tags,
          summary: `Change: ${resource.title}`,
          description: 'What the body does not name stays as it is.',
          params: itemParams,
          body: titled(`${title}Update`, update.schema) as TObject,
          headers: ifMatch,
          response: { 200: view, ...errorResponses(400, 401, 403, 404, 409, 412, 413, 415, 503) },
        },
      },
      (request, reply) =>
        inTurn(request, async (old, before) => {
          const body = request.body as Static<U>
          const plan = await update.plan(old, body, request)
          const changes = changesOf(before, body as Record<string, unknown>, resource.secrets)
          const isChange = changes.size > 0
          const label = resource.label(before)
          const object = isChange ? await carryOut(request, 'object.update', label, changes, plan) : old
          const after = isChange ? await shownIn(request, object) : before
          return reply.header('etag', tagOf(after, object)).send(after)
        }),
    )

  app.delete(
    `${path}/:ref`,
    {
      schema: {
        tags,
        summary: `Remove: ${resource.title}`,
        params: itemParams,
        headers: ifMatch,
        response: { 204: Type.Null(), ...errorResponses(401, 403, 404, 409, 412, 503) },
      },
    },
    (request, reply) =>
      inTurn(request, async (old, before) => {
        const events = (await resource.remove?.check(old, request)) ?? []
        const label = resource.label(before)
        const plan = announced(events, () => resource.removeFrom(old))
        await carryOut(request, 'object.delete', label, new Map(), plan)
        return reply.code(204).send(null)
      }),
  )
}

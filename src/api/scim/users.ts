/** `/scim/v2/Users`: the persons of the token's domain, as its provider describes them. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { userNameError } from '../../model/names.ts'
import { badRequest, ScimError } from '../../scim/error.ts'
import { patched, readPatch } from '../../scim/patch.ts'
import { readUser, type UserContent, withKept } from '../../scim/resource.ts'
import { USER_SCHEMA } from '../../scim/schema.ts'
import { selected, selectionOf } from '../../scim/select.ts'
import type { NewScimUser, ScimUser } from '../../store/store.ts'
import type { Context } from '../access/context.ts'
import { changesOf } from '../access/events.ts'
import type { UntypedApi } from '../http/deps.ts'
import { checkoutEndsOf } from '../resources/users.ts'
import { scimCallerOf } from './caller.ts'
import { carryOut, send } from './changes.ts'
import { HIDDEN, type Queried } from './routes.ts'
import { listResponse, queryOf, searchUsers } from './search.ts'
import { baseOf, isKnown, requireMatch, userView } from './views.ts'

/** Users of one domain. */
export const MAX_USERS = 100_000

export function registerScimUsers(app: UntypedApi, context: Context): void {
  const { store, clock } = context.deps

  const found = async (request: FastifyRequest): Promise<ScimUser> => {
    const { ref } = request.params as { ref: string }
    const user = await store.scimUsers.find(scimCallerOf(request).domain.id, ref)
    if (!user) throw new ScimError(404, undefined, 'there is no such user')
    return user
  }
  const viewOf = async (request: FastifyRequest, user: ScimUser) =>
    userView(baseOf(request), user, await store.scimUsers.groupsOf([user.id]))
  const answer = async (request: FastifyRequest, reply: FastifyReply, user: ScimUser) => {
    const { attributes, excludedAttributes } = request.query as Queried
    const selection = selectionOf(attributes, excludedAttributes)
    const view = await viewOf(request, user)
    reply.headers({ etag: view.meta.version, location: view.meta.location })
    if (request.method === 'GET' && isKnown(request, view.meta.version)) return reply.code(304).send()
    return send(reply, selected('User', view, selection))
  }
  const inTurn = async <T>(request: FastifyRequest, work: (user: ScimUser) => Promise<T>): Promise<T> => {
    const { id } = await found(request)
    return await context.turns.run(`scimuser ${id}`, async () => {
      const user = await found(request)
      requireMatch(request, (await viewOf(request, user)).meta.version)
      return await work(user)
    })
  }
  const checked = (request: FastifyRequest, content: UserContent): NewScimUser => {
    const { domainName, scimIdentifier } = scimCallerOf(request).domain
    const { userName, externalId, active: isActive, more } = content
    const flaw = userNameError(`${userName}@${domainName}`)
    if (flaw !== undefined) throw badRequest('invalidValue', `userName, with @${domainName}: ${flaw}`)
    if (scimIdentifier === 'external_id' && externalId === undefined)
      throw badRequest(
        'invalidValue',
        'externalId is required: in this domain it binds the user to the sign-in',
      )
    const name = userName.normalize('NFC')
    return { userName: name, ...(externalId !== undefined && { externalId }), isActive, more }
  }
  const labelOf = (request: FastifyRequest, userName: string) =>
    `${userName}@${scimCallerOf(request).domain.domainName}`
  const valuesOf = ({ userName, externalId, isActive, more }: NewScimUser) => ({
    userName,
    externalId,
    active: isActive,
    ...more,
  })
  const change = async (request: FastifyRequest, reply: FastifyReply, old: ScimUser, user: NewScimUser) => {
    const before = valuesOf(old)
    const names = new Set([...Object.keys(before), ...Object.keys(user.more)])
    const after = Object.fromEntries([...names].map((name) => [name, (valuesOf(user) as Values)[name]]))
    const changes = changesOf(before, after, [])
    if (changes.size === 0) return await answer(request, reply, old)
    const announced = { type: 'scimuser', object: labelOf(request, old.userName), changes } as const
    const made = await carryOut(context, request, { code: 'object.update', ...announced }, () =>
      store.scimUsers.update(old, user, clock()),
    )
    return await answer(request, reply, made)
  }

  app.get('/scim/v2/Users', { schema: HIDDEN }, async (request, reply) => {
    const query = queryOf(request.query as Queried)
    const { domain } = scimCallerOf(request)
    return send(reply, listResponse(query, await searchUsers(context, domain.id, baseOf(request), query)))
  })

  app.get('/scim/v2/Users/:ref', { schema: HIDDEN }, async (request, reply) =>
    answer(request, reply, await found(request)),
  )

  app.post('/scim/v2/Users', { schema: HIDDEN }, async (request, reply) => {
    const { domain } = scimCallerOf(request)
    const user = checked(request, readUser(request.body))
    if ((await store.scimUsers.count(domain.id)) >= MAX_USERS)
      throw new ScimError(403, undefined, `the domain has ${MAX_USERS} users, which is the limit`)
    const announced = { type: 'scimuser', object: labelOf(request, user.userName) } as const
    const changes = changesOf({}, valuesOf(user), [])
    const made = await carryOut(context, request, { code: 'object.create', ...announced, changes }, () =>
      store.scimUsers.create(domain.id, user, clock()),
    )
    return await answer(request, reply.code(201), made)
  })

  app.put('/scim/v2/Users/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const content = readUser(withKept(request.body, { active: old.isActive, externalId: old.externalId }))
      return await change(request, reply, old, checked(request, content))
    }),
  )

  app.patch('/scim/v2/Users/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const before = { schemas: [USER_SCHEMA], ...valuesOf(old) }
      const content = readUser(patched(before, readPatch('User', request.body)))
      return await change(request, reply, old, checked(request, content))
    }),
  )

  app.delete('/scim/v2/Users/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const person = old.personId === undefined ? undefined : await store.users.find(old.personId)
      const others = person ? await checkoutEndsOf(context, person) : []
      const announced = { type: 'scimuser', object: labelOf(request, old.userName), others } as const
      await carryOut(context, request, { code: 'object.delete', ...announced, changes: new Map() }, () =>
        store.scimUsers.remove(old),
      )
      return reply.code(204).send()
    }),
  )
}

type Values = Readonly<Record<string, unknown>>

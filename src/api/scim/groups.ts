/** `/scim/v2/Groups`: groups of the token's domain, which mappings name as their external groups. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { jsonText } from '../../model/json-text.ts'
import { badRequest, ScimError } from '../../scim/error.ts'
import { type MemberChange, memberChangeOf, patched, readPatch } from '../../scim/patch.ts'
import { readGroup, withKept } from '../../scim/resource.ts'
import { GROUP_SCHEMA } from '../../scim/schema.ts'
import { isSelected, type Selection, selected, selectionOf } from '../../scim/select.ts'
import type { NewScimGroup, ScimGroup } from '../../store/store.ts'
import { Pace } from '../../threads/pace.ts'
import type { Context } from '../access/context.ts'
import { type Changes, changesOf } from '../access/events.ts'
import type { UntypedApi } from '../http/deps.ts'
import { scimCallerOf } from './caller.ts'
import { carryOut, MEDIA_TYPE, send } from './changes.ts'
import { HIDDEN, type Queried } from './routes.ts'
import { listResponse, membersOf, queryOf, searchGroups } from './search.ts'
import { baseOf, groupTag, groupView, isKnown, requireMatch } from './views.ts'

/** Groups of one domain, and members of one group. */
export const MAX_GROUPS = 10_000
export const MAX_MEMBERS = 100_000
/** Members that are named in an event, and that are written to an answer at a time. */
const NAMED = 10
const PIECE = 200

export function registerScimGroups(app: UntypedApi, context: Context): void {
  const { store, clock } = context.deps

  const found = async (request: FastifyRequest): Promise<ScimGroup> => {
    const { ref } = request.params as { ref: string }
    const group = await store.scimGroups.find(scimCallerOf(request).domain.id, ref)
    if (!group) throw new ScimError(404, undefined, 'there is no such group')
    return group
  }
  const answer = async (request: FastifyRequest, reply: FastifyReply, group: ScimGroup) => {
    const { attributes, excludedAttributes } = request.query as Queried
    const selection = selectionOf(attributes, excludedAttributes)
    const view = groupView(baseOf(request), group, undefined)
    reply.headers({ etag: view.meta.version, location: view.meta.location })
    if (request.method === 'GET' && isKnown(request, view.meta.version)) return reply.code(304).send()
    const members = await membersOf(context, group.id, selection)
    return reply.type(MEDIA_TYPE).send(await textOf(request, group, members, selection))
  }
  const inTurn = async <T>(request: FastifyRequest, work: (group: ScimGroup) => Promise<T>): Promise<T> => {
    const { id } = await found(request)
    return await context.turns.run(`scimgroup ${id}`, async () => {
      const group = await found(request)
      requireMatch(request, groupTag(group))
      return await work(group)
    })
  }
  const labelOf = (request: FastifyRequest, { displayName }: NewScimGroup) =>
    `${displayName}@${scimCallerOf(request).domain.domainName}`

  /** Returns some names of members for the event, and the number of the others. */
  const namesOf = async (domainId: string, ids: ReadonlySet<string>): Promise<string[]> => {
    const first = [...ids].slice(0, NAMED)
    const users = await Promise.all(first.map((id) => store.scimUsers.find(domainId, id)))
    const names = users.map((user, at) => user?.userName ?? first[at]!)
    return ids.size > NAMED ? [...names, `and ${ids.size - NAMED} more`] : names
  }
  const changesFor = async (
    domainId: string,
    before: NewScimGroup | undefined,
    after: NewScimGroup,
    { isWhole, added, removed }: MemberChange,
  ): Promise<Changes> => {
    const { displayName, externalId } = after
    const changes = changesOf({ ...before }, { displayName, externalId }, [])
    if (isWhole && before) changes.set('members', ['all', await namesOf(domainId, added)])
    else {
      if (added.size > 0) changes.set('members_added', [undefined, await namesOf(domainId, added)])
      if (removed.size > 0) changes.set('members_removed', [await namesOf(domainId, removed), undefined])
    }
    return changes
  }
  const requireMembers = async (request: FastifyRequest, { added }: MemberChange, before: number) => {
    const { domain } = scimCallerOf(request)
    if (before + added.size > MAX_MEMBERS)
      throw new ScimError(403, undefined, `expected ${MAX_MEMBERS} members of a group at most`)
    const [stranger] = await store.scimGroups.strangers(domain.id, [...added])
    if (stranger !== undefined)
      throw badRequest(
        'invalidValue',
        `the member ${JSON.stringify(stranger.slice(0, 40))} is no user of this service`,
      )
  }
  const change = async (
    request: FastifyRequest,
    old: ScimGroup,
    group: NewScimGroup,
    members: MemberChange,
  ): Promise<ScimGroup> => {
    const { domain } = scimCallerOf(request)
    await requireMembers(request, members, members.isWhole ? 0 : await store.scimGroups.memberCount(old.id))
    const changes = await changesFor(domain.id, old, group, members)
    if (changes.size === 0) return old
    const announced = {
      code: 'object.update',
      type: 'scimgroup',
      object: labelOf(request, old),
      changes,
    } as const
    return await carryOut(context, request, announced, () =>
      store.scimGroups.update(old, group, members, clock()),
    )
  }

  app.get('/scim/v2/Groups', { schema: HIDDEN }, async (request, reply) => {
    const query = queryOf(request.query as Queried)
    const { domain } = scimCallerOf(request)
    return send(reply, listResponse(query, await searchGroups(context, domain.id, baseOf(request), query)))
  })

  app.get('/scim/v2/Groups/:ref', { schema: HIDDEN }, async (request, reply) =>
    answer(request, reply, await found(request)),
  )

  app.post('/scim/v2/Groups', { schema: HIDDEN }, async (request, reply) => {
    const { domain } = scimCallerOf(request)
    const { members: ids, ...group } = readGroup(request.body)
    const members = { isWhole: false, added: new Set(ids), removed: new Set<string>() }
    if ((await store.scimGroups.count(domain.id)) >= MAX_GROUPS)
      throw new ScimError(403, undefined, `the domain has ${MAX_GROUPS} groups, which is the limit`)
    await requireMembers(request, members, 0)
    const changes = await changesFor(domain.id, undefined, group, members)
    const announced = {
      code: 'object.create',
      type: 'scimgroup',
      object: labelOf(request, group),
      changes,
    } as const
    const made = await carryOut(context, request, announced, async () => {
      const empty = await store.scimGroups.create(domain.id, group, clock())
      return ids.length === 0 ? empty : await store.scimGroups.update(empty, group, members, clock())
    })
    return await answer(request, reply.code(201), made)
  })

  app.put('/scim/v2/Groups/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const { members, ...group } = readGroup(withKept(request.body, { externalId: old.externalId }))
      const whole = { isWhole: true, added: new Set(members), removed: new Set<string>() }
      return await answer(request, reply, await change(request, old, group, whole))
    }),
  )

  app.patch('/scim/v2/Groups/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const steps = readPatch('Group', request.body)
      const { displayName, externalId } = old
      const before = { schemas: [GROUP_SCHEMA], displayName, externalId }
      const others = steps.filter(({ attribute }) => attribute.name !== 'members')
      const { members: _members, ...group } = readGroup(patched(before, others))
      const after = await change(request, old, group, memberChangeOf(steps))
      reply.header('etag', groupTag(after))
      // A group may be large, and no client needs it back (RFC 7644 section 3.5.2).
      if ((request.query as Queried)['attributes'] === undefined) return reply.code(204).send()
      return await answer(request, reply, after)
    }),
  )

  app.delete('/scim/v2/Groups/:ref', { schema: HIDDEN }, (request, reply) =>
    inTurn(request, async (old) => {
      const announced = { type: 'scimgroup', object: labelOf(request, old), changes: new Map() } as const
      await carryOut(context, request, { code: 'object.delete', ...announced }, () =>
        store.scimGroups.remove(old, clock()),
      )
      return reply.code(204).send()
    }),
  )
}

/** Writes a group in slices, since it may have very many members. */
async function textOf(
  request: FastifyRequest,
  group: ScimGroup,
  members: readonly string[] | undefined,
  selection: Selection,
): Promise<string> {
  const base = baseOf(request)
  const text = jsonText(selected('Group', groupView(base, group, undefined), selection))
  if (!members || !isSelected('Group', 'members', selection)) return text
  const pace = new Pace()
  const pieces: string[] = []
  for (let at = 0; at < members.length; at += PIECE) {
    await pace.step()
    const view = groupView(base, group, members.slice(at, at + PIECE))
    const shown = selected('Group', view, selection)['members'] as object[]
    pieces.push(jsonText(shown).slice(1, -1))
  }
  return `${text.slice(0, -1)},"members":[${pieces.join(',')}]}`
}

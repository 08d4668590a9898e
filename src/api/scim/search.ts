/**
 * Searches: by an index where the filter asks for one value of a unique attribute, else all users or groups of the domain in
 * slices, one such search of a domain at a time.
 */
import { badRequest } from '../../scim/error.ts'
import { type Filter, parseFilter } from '../../scim/filter.ts'
import { testOf } from '../../scim/match.ts'
import { attributeAt, type ResourceType } from '../../scim/schema.ts'
import { isSelected, type Selection, selected, selectionOf } from '../../scim/select.ts'
import type { ScimCollection, ScimGroup, ScimUser } from '../../store/store.ts'
import { Pace } from '../../threads/pace.ts'
import type { Context } from '../access/context.ts'
import { groupView, numberOf, userView } from './views.ts'

/** Resources of one page, and rows that one query of a search reads. */
export const MAX_PAGE = 200
const PIECE = 200
/** Members that one filter may ask for. */
const MAX_MEMBERS_ASKED = 10
/** Members of all groups of a page: lists show them as far as they fit. */
const MEMBERS_PIECE = 1000
export const MAX_LISTED_MEMBERS = 20_000

export interface Query {
  filter: Filter | undefined
  /** From 1. */
  startIndex: number
  count: number
  selection: Selection
}

export interface Found {
  total: number
  resources: object[]
}

/** Reads the parameters of a search, of a URL or a body. @throws ScimError */
export function queryOf(given: Readonly<Record<string, unknown>>): Query {
  const { filter, startIndex, count, attributes, excludedAttributes } = given
  if (filter !== undefined && typeof filter !== 'string')
    throw badRequest('invalidFilter', 'expected one text as filter')
  return {
    filter: filter === undefined ? undefined : parseFilter(filter),
    startIndex: Math.max(1, numberOf('startIndex', startIndex) ?? 1),
    count: Math.min(Math.max(0, numberOf('count', count) ?? MAX_PAGE), MAX_PAGE),
    selection: selectionOf(attributes, excludedAttributes),
  }
}

export function listResponse({ startIndex }: Query, { total, resources }: Found): object {
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:ListResponse'],
    totalResults: total,
    startIndex,
    itemsPerPage: resources.length,
    Resources: resources,
  }
}

/** One kind of resource, for a search. */
interface Kind<T> {
  type: ResourceType
  all: Pick<ScimCollection<T, never>, 'count' | 'some' | 'find' | 'findBy'>
  /** Returns the resources as a filter sees them. */
  views: (objects: readonly T[], filter: Filter) => Promise<Record<string, unknown>[]>
  show: (objects: readonly T[]) => Promise<object[]>
}

/** `skip`: resources of another kind that came before. */
async function search<T extends ScimUser | ScimGroup>(
  context: Context,
  domainId: string,
  kind: Kind<T>,
  { filter, startIndex, count }: Query,
  isOfAll: boolean,
): Promise<Found> {
  const offset = startIndex - 1
  if (!filter) {
    const total = await kind.all.count(domainId)
    const some = count === 0 ? [] : await kind.all.some(domainId, { offset, limit: count })
    return { total, resources: await kind.show(some) }
  }
  const isMet = testOf(kind.type, filter, isOfAll)
  const meeting = async (objects: readonly T[]) => {
    const views = await kind.views(objects, filter)
    return objects.filter((_, at) => isMet(views[at]!))
  }
  const one = uniqueIn(kind.type, filter)
  if (one) {
    const { field, value } = one
    const found = field === 'id' ? kind.all.find(domainId, value) : kind.all.findBy(domainId, field, value)
    const candidate = await found
    const met = candidate ? await meeting([candidate]) : []
    return { total: met.length, resources: await kind.show(met.slice(offset, offset + count)) }
  }
  return await context.turns.run(`scim search ${domainId}`, async () => {
    const pace = new Pace()
    const page: T[] = []
    let total = 0
    for (let after = ''; ; ) {
      await pace.step()
      const piece = await kind.all.some(domainId, { after, limit: PIECE })
      for (const met of await meeting(piece)) {
        if (offset <= total && page.length < count) page.push(met)
        total += 1
      }
      if (piece.length < PIECE) return { total, resources: await kind.show(page) }
      after = piece.at(-1)!.id
    }
  })
}

export async function searchUsers(
  context: Context,
  domainId: string,
  base: string,
  query: Query,
  isOfAll = false,
): Promise<Found> {
  const { scimUsers } = context.deps.store
  const withGroups = async (users: readonly ScimUser[], isAsked: boolean) => {
    const all = isAsked ? await scimUsers.groupsOf(users.map(({ id }) => id)) : []
    return users.map((user) =>
      userView(
        base,
        user,
        all.filter(({ userId }) => userId === user.id),
      ),
    )
  }
  const kind: Kind<ScimUser> = {
    type: 'User',
    all: scimUsers,
    views: (users, filter) => withGroups(users, mentions('User', filter, 'groups')),
    show: async (users) =>
      (await withGroups(users, true)).map((one) => selected('User', one, query.selection)),
  }
  return await search(context, domainId, kind, query, isOfAll)
}

export async function searchGroups(
  context: Context,
  domainId: string,
  base: string,
  query: Query,
  isOfAll = false,
): Promise<Found> {
  const { scimGroups } = context.deps.store
  const kind: Kind<ScimGroup> = {
    type: 'Group',
    all: scimGroups,
    views: async (groups, filter) => {
      const asked = membersAsked(filter)
      const ids = groups.map(({ id }) => id)
      const having = await Promise.all(asked.map((id) => scimGroups.withMember(ids, id)))
      return groups.map((group) => {
        const members = asked.filter((_, at) => having[at]!.includes(group.id))
        return groupView(base, group, members)
      })
    },
    show: async (groups) => {
      const shown: object[] = []
      let left = MAX_LISTED_MEMBERS
      for (const group of groups) {
        const members = await membersOf(context, group.id, query.selection)
        left -= members?.length ?? 0
        if (left < 0)
          throw badRequest(
            'tooMany',
            'the groups of this page have too many members: exclude members, or ask for fewer',
          )
        shown.push(selected('Group', groupView(base, group, members), query.selection))
      }
      return shown
    },
  }
  return await search(context, domainId, kind, query, isOfAll)
}

/** Returns the ids of a group's members, or undefined if they are not selected. */
export async function membersOf(
  { deps: { store } }: Context,
  groupId: string,
  selection: Selection,
): Promise<string[] | undefined> {
  if (!isSelected('Group', 'members', selection)) return undefined
  const all: string[] = []
  const pace = new Pace()
  for (let after = ''; ; await pace.step()) {
    const piece = await store.scimGroups.members(groupId, after, MEMBERS_PIECE)
    for (const id of piece) all.push(id)
    if (piece.length < MEMBERS_PIECE) return all
    after = piece.at(-1)!
  }
}

/** Returns the value of a unique attribute that every match has; undefined if the filter asks for none. */
function uniqueIn(
  type: ResourceType,
  filter: Filter,
): { field: 'id' | 'name' | 'externalId'; value: string } | undefined {
  if (filter.kind === 'and')
    return filter.of.map((one) => uniqueIn(type, one)).find((one) => one !== undefined)
  if (filter.kind !== 'compare' || filter.operator !== 'eq' || typeof filter.value !== 'string')
    return undefined
  const found = attributeAt(type, filter.path)
  if (typeof found !== 'object' || found.part) return undefined
  const { name } = found.attribute
  const { value } = filter
  if (name === 'id' || name === 'externalId') return { field: name, value }
  return name === (type === 'User' ? 'userName' : 'displayName') ? { field: 'name', value } : undefined
}

function mentions(type: ResourceType, filter: Filter, name: string): boolean {
  if (filter.kind === 'and' || filter.kind === 'or') return filter.of.some((one) => mentions(type, one, name))
  if (filter.kind === 'not') return mentions(type, filter.of, name)
  const found = attributeAt(type, filter.path)
  return typeof found === 'object' && found.attribute.name === name
}

/** Returns the ids of members that a filter of groups asks for. @throws ScimError `invalidFilter` for another question */
function membersAsked(filter: Filter): string[] {
  const ids = new Set<string>()
  const add = (one: Filter, isInBrackets: boolean): void => {
    if (one.kind === 'and' || one.kind === 'or') for (const inner of one.of) add(inner, isInBrackets)
    else if (one.kind === 'not') add(one.of, isInBrackets)
    else if (isInBrackets || mentions('Group', one, 'members')) {
      if (one.kind === 'value' && !one.about) {
        add(one.of, true)
        return
      }
      const isId = one.kind === 'compare' && ['eq', 'ne'].includes(one.operator) && isOfValue(one.path)
      if (!isId || typeof one.value !== 'string')
        throw badRequest('invalidFilter', 'members are found by value eq "ID" only')
      ids.add(one.value)
    }
  }
  add(filter, false)
  if (ids.size > MAX_MEMBERS_ASKED)
    throw badRequest('invalidFilter', `expected ${MAX_MEMBERS_ASKED} members at most, got ${ids.size}`)
  return [...ids]
}

const isOfValue = (path: string): boolean => /(?:^|[.:])(?:members|value)$/i.test(path)

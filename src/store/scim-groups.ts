/** Groups as providers have described them by SCIM. Their members are changed some at a time, since a group may be large. */
import { setImmediate as aside } from 'node:timers/promises'
import { groupKey } from '../model/group-names.ts'
import type { Id } from '../model/objects.ts'
import { ChangedError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ScimGroupRow, StoreContext } from './migrations/schema.ts'
import { isMapped } from './person-rows.ts'
import { syncPerson } from './provisioned.ts'
import { type Tx, write } from './query.ts'
import type { NewScimGroup, ScimGroup, ScimGroupRepository, ScimMemberChange, ScimPlace } from './store.ts'

const TYPE = 'group'
/**
 * Members that one transaction changes, ids that one query asks for, and rows that are read at a time: other work of the event
 * loop runs between them.
 */
const TOGETHER = 25
const ASKED = 200
const PIECE = 1000

/** Work of a transaction on one user: membership, if any, and then the person. */
interface Work {
  id: Id
  member?: 'added' | 'removed'
}

export function scimGroupRepository({ db, newId }: StoreContext): ScimGroupRepository {
  const members = async (groupId: Id, after: Id, limit: number): Promise<Id[]> =>
    (await membersBehind(db, groupId, after, limit)).map(({ user_id }) => user_id)

  const allMembers = async (groupId: Id): Promise<Id[]> => {
    const all: Id[] = []
    for (let after = ''; ; await aside()) {
      const piece = await members(groupId, after, PIECE)
      for (const id of piece) all.push(id)
      if (piece.length < PIECE) return all
      after = piece.at(-1)!
    }
  }

  const membersAmong = async (groupId: Id, ids: readonly Id[]): Promise<Set<Id>> => {
    const found = new Set<Id>()
    for (const some of pieces(ids, ASKED)) {
      const rows = db.selectFrom('scim_members').select('user_id').where('group_id', '=', groupId)
      for (const { user_id } of await rows.where('user_id', 'in', some).execute()) found.add(user_id)
      await aside()
    }
    return found
  }

  /** Returns the work of a change, administrators first: a refusal for one of them comes before all else. */
  const workOf = async (
    old: ScimGroup,
    { isWhole, added, removed }: ScimMemberChange,
    isRenamed: boolean,
  ): Promise<{ work: Work[]; first: number }> => {
    const before = isWhole || isRenamed ? await allMembers(old.id) : undefined
    const were = before ? new Set(before) : await membersAmong(old.id, [...added, ...removed])
    const gone = (id: Id) => (isWhole ? !added.has(id) : removed.has(id))
    const work: Work[] = [
      ...[...were].filter(gone).map((id) => ({ id, member: 'removed' as const })),
      ...[...added].filter((id) => !were.has(id)).map((id) => ({ id, member: 'added' as const })),
      ...(isRenamed ? [...were].filter((id) => !gone(id)).map((id) => ({ id })) : []),
    ]
    const chiefs = new Set((await administrators(db, old.authDomainId)).map(({ id }) => id))
    const isFirst = ({ id }: Work) => chiefs.has(id)
    const first = work.filter(isFirst)
    return { work: [...first, ...work.filter((one) => !isFirst(one))], first: first.length }
  }

  const carryOut = async (tx: Tx, groupId: Id, work: readonly Work[], isMappedTo: boolean): Promise<void> => {
    const of = (member: Work['member']) => work.filter((one) => one.member === member).map(({ id }) => id)
    const [gone, come] = [of('removed'), of('added')]
    if (gone.length > 0)
      await tx
        .deleteFrom('scim_members')
        .where('group_id', '=', groupId)
        .where('user_id', 'in', gone)
        .execute()
    if (come.length > 0) {
      const rows = come.map((user_id) => ({ group_id: groupId, user_id }))
      await tx
        .insertInto('scim_members')
        .values(rows)
        .onConflict((c) => c.doNothing())
        .execute()
    }
    if (isMappedTo) for (const { id } of work) await syncPerson(tx, newId, id)
  }

  const changeMembers = async (
    old: ScimGroup,
    object: NewScimGroup,
    change: ScimMemberChange,
    begin: (tx: Tx) => Promise<void>,
  ): Promise<void> => {
    const isMappedTo = await isMapped(db, old.authDomainId, [...namesOf(old), ...namesOf(object)])
    const isRenamed = namesOf(old).join('\n') !== namesOf(object).join('\n')
    const { work, first } = await workOf(old, change, isMappedTo && isRenamed)
    const head = Math.max(first, TOGETHER)
    await write(db, { type: TYPE, name: object.displayName }, async (tx) => {
      await begin(tx)
      await carryOut(tx, old.id, work.slice(0, head), isMappedTo)
    })
    for (const some of pieces(work.slice(head), TOGETHER))
      await write(db, { type: TYPE, name: object.displayName }, (tx) =>
        carryOut(tx, old.id, some, isMappedTo),
      )
  }

  return {
    members,

    count: async (domainId) => (await counted(db, domainId))[0]!.total,

    memberCount: async (groupId) => (await countedMembers(db, groupId))[0]!.total,

    some: async (domainId, { after = '', offset = 0, limit }: ScimPlace) => {
      const rows = db.selectFrom('scim_groups').selectAll().where('auth_domain_id', '=', domainId)
      const page = rows.where('id', '>', after).orderBy('id').limit(limit).offset(offset)
      return (await page.execute()).map(scimGroup)
    },

    find: async (domainId, id) => {
      const [row] = await byId(db, domainId, id.toUpperCase())
      return row && scimGroup(row)
    },

    findBy: async (domainId, field, value) => {
      const [row] =
        field === 'name'
          ? await byName(db, domainId, groupKey(value))
          : await byExternalId(db, domainId, value)
      return row && scimGroup(row)
    },

    withMember: async (groupIds, userId) => {
      if (groupIds.length === 0) return []
      const rows = db.selectFrom('scim_members').select('group_id').where('user_id', '=', userId)
      return (await rows.where('group_id', 'in', groupIds).execute()).map(({ group_id }) => group_id)
    },

    strangers: async (domainId, userIds) => {
      const known = new Set<Id>()
      for (const some of pieces(userIds, ASKED)) {
        const rows = db.selectFrom('scim_users').select('id').where('auth_domain_id', '=', domainId)
        for (const { id } of await rows.where('id', 'in', some).execute()) known.add(id)
        await aside()
      }
      return userIds.filter((id) => !known.has(id))
    },

    create: (domainId, object, now) =>
      write(db, { type: TYPE, name: object.displayName }, async (tx) => {
        const id = newId()
        const row = { id, auth_domain_id: domainId, created: now, modified: now, revision: 1 }
        await tx
          .insertInto('scim_groups')
          .values({ ...row, ...columnsOf(object) })
          .execute()
        return scimGroup((await byId(tx, domainId, id))[0]!)
      }),

    update: async (old, object, change, now) => {
      await changeMembers(old, object, change, (tx) =>
        requireUnchanged(tx, old, { ...columnsOf(object), modified: now }),
      )
      return scimGroup((await byId(db, old.authDomainId, old.id))[0]!)
    },

    remove: async (old, now) => {
      const none = { isWhole: true, added: new Set<Id>(), removed: new Set<Id>() }
      await changeMembers(old, old, none, (tx) => requireUnchanged(tx, old, { modified: now }))
      await db.deleteFrom('scim_groups').where('id', '=', old.id).execute()
    },
  }
}

const counted = keptQuery((db: Db, domainId: Id) =>
  db
    .selectFrom('scim_groups')
    .select((e) => e.fn.countAll<number>().as('total'))
    .where('auth_domain_id', '=', domainId),
)
const countedMembers = keptQuery((db: Db, groupId: Id) =>
  db
    .selectFrom('scim_members')
    .select((e) => e.fn.countAll<number>().as('total'))
    .where('group_id', '=', groupId),
)
const byId = keptQuery((db: Db, domainId: Id, id: Id) =>
  db.selectFrom('scim_groups').selectAll().where('auth_domain_id', '=', domainId).where('id', '=', id),
)
const byName = keptQuery((db: Db, domainId: Id, key: string) =>
  db.selectFrom('scim_groups').selectAll().where('auth_domain_id', '=', domainId).where('name_key', '=', key),
)
const byExternalId = keptQuery((db: Db, domainId: Id, externalId: string) =>
  db
    .selectFrom('scim_groups')
    .selectAll()
    .where('auth_domain_id', '=', domainId)
    .where('external_id', '=', externalId),
)
const membersBehind = keptQuery((db: Db, groupId: Id, after: Id, limit: number) =>
  db
    .selectFrom('scim_members')
    .select('user_id')
    .where('group_id', '=', groupId)
    .where('user_id', '>', after)
    .orderBy('user_id')
    .limit(limit),
)
/** Users of the domain whose persons have all rights. */
const administrators = keptQuery((db: Db, domainId: Id) =>
  db
    .selectFrom('scim_users as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .select('s.id')
    .where('s.auth_domain_id', '=', domainId)
    .where('u.profile', '=', 'product_administrator')
    .where('u.is_disabled', '=', 0),
)

/** @throws ChangedError if the group is not what it was */
async function requireUnchanged(tx: Tx, old: ScimGroup, columns: Partial<ScimGroupRow>): Promise<void> {
  const rows = tx
    .updateTable('scim_groups')
    .set({ ...columns, revision: old.revision + 1 })
    .where('id', '=', old.id)
  const { numUpdatedRows } = await rows.where('revision', '=', old.revision).executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new ChangedError(TYPE)
}

const namesOf = ({ displayName, externalId }: NewScimGroup): string[] =>
  externalId === undefined ? [displayName] : [displayName, externalId]

function columnsOf({ displayName, externalId }: NewScimGroup) {
  return { display_name: displayName, name_key: groupKey(displayName), external_id: externalId ?? null }
}

function pieces<T>(all: readonly T[], size: number): T[][] {
  const count = Math.ceil(all.length / size)
  return Array.from({ length: count }, (_, at) => all.slice(at * size, (at + 1) * size))
}

function scimGroup(row: ScimGroupRow): ScimGroup {
  return {
    id: row.id,
    authDomainId: row.auth_domain_id,
    displayName: row.display_name,
    ...(row.external_id !== null && { externalId: row.external_id }),
    created: row.created,
    modified: row.modified,
    revision: row.revision,
  }
}

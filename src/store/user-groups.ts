import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { Id, UserGroup } from '../model/objects.ts'
import { jsonList } from './engine/json.ts'
import { setLinks } from './links.ts'
import type { Db, GroupRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { key, list, refuseInUse, requireIds, setColumns, type Tx } from './query.ts'
import { column, related } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'user group'
export const USER_GROUP_FIELDS = {
  group_name: column('name', 'name_key'),
  description: column('text', 'description'),
  users: related('name', {
    value: sql.ref('user_groups.id'),
    from: sql`user_group_members as m inner join users as u on u.id = m.user_id`,
    equals: sql.ref('m.group_id'),
    member: sql.ref('u.name_key'),
  }),
  id: column('id', 'user_groups.id'),
}

export function userGroupRepository(context: StoreContext): Repository<UserGroup> {
  return namedRepository(context, {
    type: TYPE,
    table: 'user_groups',
    fields: USER_GROUP_FIELDS,
    standard: 'group_name',
    select,
    object: userGroup,
    nameOf: ({ groupName }) => groupName,

    insert: async (tx, id, object: Omit<UserGroup, 'id'>) => {
      await tx
        .insertInto('user_groups')
        .values({
          id,
          group_name: object.groupName,
          name_key: nameKey(object.groupName),
          description: object.description,
        })
        .execute()
      await setUsers(tx, id, object.userIds)
    },

    change: async (tx, id, change) => {
      await setColumns(tx, 'user_groups', id, {
        group_name: change.groupName,
        name_key: key(change.groupName),
        description: change.description,
      })
      if (change.userIds !== undefined) await setUsers(tx, id, change.userIds)
    },

    requireUnused: async (tx, { id, groupName }) => {
      await refuseInUse(TYPE, groupName, [
        {
          type: 'the authorization for target group',
          query: tx
            .selectFrom('authorizations as a')
            .innerJoin('target_groups as g', 'g.id', 'a.target_group_id')
            .select('g.group_name as name')
            .where('a.user_group_id', '=', id)
            .orderBy('g.name_key'),
        },
        {
          type: 'as approvers, the authorization for target group',
          query: tx
            .selectFrom('authorization_approvers as p')
            .innerJoin('authorizations as a', 'a.id', 'p.authorization_id')
            .innerJoin('target_groups as g', 'g.id', 'a.target_group_id')
            .select('g.group_name as name')
            .where('p.group_id', '=', id)
            .orderBy('g.name_key'),
        },
      ])
    },
  })
}

function select(db: Db) {
  return db
    .selectFrom('user_groups')
    .selectAll('user_groups')
    .select(
      sql<string>`(select ${jsonList(sql`m.user_id`, sql`m.user_id`)} from user_group_members m where m.group_id = user_groups.id)`.as(
        'users',
      ),
    )
}

async function setUsers(tx: Tx, groupId: Id, userIds: readonly Id[]): Promise<void> {
  await requireIds(tx, 'users', userIds, TYPE, 'users')
  const rows = userIds.map((id) => ({ user_id: id }))
  await setLinks(tx, 'user_group_members', { group_id: groupId }, rows)
}

function userGroup(row: GroupRow & { users: string }): UserGroup {
  return { id: row.id, groupName: row.group_name, description: row.description, userIds: list(row.users) }
}

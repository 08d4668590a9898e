import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { Id, UserGroup } from '../model/objects.ts'
import { ALL_THE_TIME } from '../model/timeframes.ts'
import { jsonList } from './engine/json.ts'
import { keptQuery } from './engine/kept-query.ts'
import { setLinks } from './links.ts'
import type { Db, StoreContext, UserGroupRow } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { flag, key, list, refuseInUse, requireIds, setColumns, type Tx } from './query.ts'
import { column, related } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'user group'
export const USER_GROUP_FIELDS = {
  group_name: column('name', 'name_key'),
  description: column('text', 'description'),
  second_factor: column('label', 'second_factor'),
  second_factor_remember: column('integer', 'second_factor_remember'),
  second_factor_keys: column('flag', 'second_factor_keys'),
  users: related('name', {
    value: sql.ref('user_groups.id'),
    from: sql`user_group_members as m inner join users as u on u.id = m.user_id and u.auth_domain_id is null`,
    equals: sql.ref('m.group_id'),
    member: sql.ref('u.name_key'),
  }),
  timeframes: related('name', {
    value: sql.ref('user_groups.id'),
    from: sql`(select x.group_id, x.timeframe_id from user_group_timeframes as x
      union all
      select y.id, ${ALL_THE_TIME} from user_groups as y
      where not exists (select 1 from user_group_timeframes as z where z.group_id = y.id)) as ut
      inner join timeframes as tf on tf.id = ut.timeframe_id`,
    equals: sql.ref('ut.group_id'),
    member: sql.ref('tf.name_key'),
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
          second_factor: object.secondFactor ?? 'none',
          second_factor_remember: object.secondFactorRemember ?? 0,
          second_factor_keys: object.secondFactorKeys ? 1 : 0,
        })
        .execute()
      await setUsers(tx, id, object.userIds)
      await setTimeframes(tx, id, object.timeframeIds ?? [])
    },

    change: async (tx, id, change) => {
      await setColumns(tx, 'user_groups', id, {
        group_name: change.groupName,
        name_key: key(change.groupName),
        description: change.description,
        second_factor: change.secondFactor,
        second_factor_remember: change.secondFactorRemember,
        second_factor_keys: flag(change.secondFactorKeys),
      })
      if (change.userIds !== undefined) await setUsers(tx, id, change.userIds)
      if (change.timeframeIds !== undefined) await setTimeframes(tx, id, change.timeframeIds)
    },

    requireUnused: async (tx, { id, groupName }) => {
      await refuseInUse(TYPE, groupName, [
        {
          type: 'notification',
          query: tx
            .selectFrom('notification_user_groups as n')
            .innerJoin('notifications as o', 'o.id', 'n.notification_id')
            .select('o.notification_name as name')
            .where('n.group_id', '=', id)
            .orderBy('o.name_key'),
        },
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
        {
          type: 'a mapping of the authentication domain',
          query: tx
            .selectFrom('auth_domain_mappings as m')
            .innerJoin('auth_domains as d', 'd.id', 'm.auth_domain_id')
            .select('d.domain_name as name')
            .distinct()
            .where('m.user_group_id', '=', id)
            .orderBy('name'),
        },
      ])
    },
  })
}

function select(db: Db) {
  return db
    .selectFrom('user_groups')
    .selectAll('user_groups')
    .select([
      sql<string>`(select ${jsonList(sql`m.user_id`, sql`m.user_id`)} from user_group_members m inner join users u on u.id = m.user_id where m.group_id = user_groups.id and u.auth_domain_id is null)`.as(
        'users',
      ),
      sql<string>`(select ${jsonList(sql`t.timeframe_id`, sql`t.timeframe_id`)} from user_group_timeframes t where t.group_id = user_groups.id)`.as(
        'timeframes',
      ),
    ])
}

/** Sets the local users. Persons of domains stay: their membership comes from mappings. */
async function setUsers(tx: Tx, groupId: Id, userIds: readonly Id[]): Promise<void> {
  await requireIds(tx, 'users', userIds, TYPE, 'users')
  const persons = await personsOf(tx, groupId)
  const rows = [...userIds.map((id) => ({ user_id: id })), ...persons]
  await setLinks(tx, 'user_group_members', { group_id: groupId }, rows)
}

const personsOf = keptQuery((db: Db, groupId: Id) =>
  db
    .selectFrom('user_group_members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .select('m.user_id')
    .where('m.group_id', '=', groupId)
    .where('u.auth_domain_id', 'is not', null),
)

/** Without any it has all the time, which is then not written: so it is for all groups from before. */
async function setTimeframes(tx: Tx, groupId: Id, timeframeIds: readonly Id[]): Promise<void> {
  const ids = timeframeIds.some((id) => id !== ALL_THE_TIME) ? timeframeIds : []
  await requireIds(tx, 'timeframes', ids, TYPE, 'timeframes')
  const rows = ids.map((id) => ({ timeframe_id: id }))
  await setLinks(tx, 'user_group_timeframes', { group_id: groupId }, rows)
}

function userGroup(row: UserGroupRow & { users: string; timeframes: string }): UserGroup {
  const timeframeIds = list<Id>(row.timeframes)
  return {
    id: row.id,
    groupName: row.group_name,
    description: row.description,
    userIds: list(row.users),
    ...(row.second_factor === 'required' && { secondFactor: 'required' as const }),
    ...(row.second_factor_remember > 0 && { secondFactorRemember: row.second_factor_remember }),
    ...(row.second_factor_keys !== 0 && { secondFactorKeys: true }),
    ...(timeframeIds.length > 0 && { timeframeIds }),
  }
}

import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { Id, TargetGroup, TargetKind } from '../model/objects.ts'
import { jsonList, jsonObject } from './engine/json.ts'
import { setLinks } from './links.ts'
import type { Db, GroupRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { key, list, refuseInUse, requireIds, setColumns, type Tx } from './query.ts'
import { column, related } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'target group'
export const TARGET_GROUP_FIELDS = {
  group_name: column('name', 'name_key'),
  description: column('text', 'description'),
  'session.accounts': related('name', {
    value: sql.ref('target_groups.id'),
    from: sql`target_group_sessions as t
      inner join accounts as a on a.id = t.account_id inner join domains as d on d.id = a.domain_id
      inner join services as s on s.id = t.service_id inner join devices as v on v.id = s.device_id`,
    equals: sql.ref('t.target_group_id'),
    member: sql`(a.name_key || '@' || d.name_key || ':' || v.name_key || ':' || s.name_key)`,
  }),
  'session.interactive_logins': serviceOf('interactive'),
  'session.account_mappings': serviceOf('mapping'),
  'password_retrieval.accounts': related('name', {
    value: sql.ref('target_groups.id'),
    from: sql`target_group_retrievals as t
      inner join accounts as a on a.id = t.account_id inner join domains as d on d.id = a.domain_id
      left join devices as v on v.id = d.device_id`,
    equals: sql.ref('t.target_group_id'),
    member: sql`(a.name_key || '@' || d.name_key || coalesce('@' || v.name_key, ''))`,
  }),
  id: column('id', 'target_groups.id'),
}

/** Returns the services of that kind, as `DEVICE:SERVICE`. */
function serviceOf(kind: Exclude<TargetKind, 'account'>) {
  return related('name', {
    value: sql.ref('target_groups.id'),
    from: sql`(select target_group_id, service_id from target_group_logins where kind = ${sql.lit(kind)}) as t
      inner join services as s on s.id = t.service_id inner join devices as v on v.id = s.device_id`,
    equals: sql.ref('t.target_group_id'),
    member: sql`(v.name_key || ':' || s.name_key)`,
  })
}

export function targetGroupRepository(context: StoreContext): Repository<TargetGroup> {
  return namedRepository(context, {
    type: TYPE,
    table: 'target_groups',
    fields: TARGET_GROUP_FIELDS,
    standard: 'group_name',
    select,
    object: targetGroup,
    nameOf: ({ groupName }) => groupName,

    insert: async (tx, id, object: Omit<TargetGroup, 'id'>) => {
      await tx
        .insertInto('target_groups')
        .values({
          id,
          group_name: object.groupName,
          name_key: nameKey(object.groupName),
          description: object.description,
        })
        .execute()
      await setMembers(tx, id, object)
    },

    change: async (tx, id, change) => {
      await setColumns(tx, 'target_groups', id, {
        group_name: change.groupName,
        name_key: key(change.groupName),
        description: change.description,
      })
      await setMembers(tx, id, change)
    },

    requireUnused: async (tx, { id, groupName }) => {
      await refuseInUse(TYPE, groupName, [
        {
          type: 'notification',
          query: tx
            .selectFrom('notification_target_groups as n')
            .innerJoin('notifications as o', 'o.id', 'n.notification_id')
            .select('o.notification_name as name')
            .where('n.group_id', '=', id)
            .orderBy('o.name_key'),
        },
        {
          type: 'the authorization for user group',
          query: tx
            .selectFrom('authorizations as a')
            .innerJoin('user_groups as g', 'g.id', 'a.user_group_id')
            .select('g.group_name as name')
            .where('a.target_group_id', '=', id)
            .orderBy('g.name_key'),
        },
      ])
    },
  })
}

const TARGET = jsonObject(['accountId', sql`t.account_id`], ['serviceId', sql`t.service_id`])

function select(db: Db) {
  return db
    .selectFrom('target_groups')
    .selectAll('target_groups')
    .select([
      sql<string>`(select ${jsonList(TARGET, sql`t.account_id, t.service_id`)}
        from target_group_sessions t where t.target_group_id = target_groups.id)`.as('sessions'),
      sql<string>`(select ${jsonList(sql`t.service_id`, sql`t.service_id`)} from target_group_logins t
        where t.target_group_id = target_groups.id and t.kind = 'interactive')`.as('interactive'),
      sql<string>`(select ${jsonList(sql`t.service_id`, sql`t.service_id`)} from target_group_logins t
        where t.target_group_id = target_groups.id and t.kind = 'mapping')`.as('mapping'),
      sql<string>`(select ${jsonList(sql`t.account_id`, sql`t.account_id`)}
        from target_group_retrievals t where t.target_group_id = target_groups.id)`.as('retrievals'),
    ])
}

async function setMembers(tx: Tx, id: Id, group: Partial<TargetGroup>): Promise<void> {
  const { sessionAccounts: sessions, passwordRetrievalAccountIds: retrievals } = group
  await setLogins(tx, id, 'interactive', group.interactiveServiceIds)
  await setLogins(tx, id, 'mapping', group.mappingServiceIds)
  if (sessions !== undefined) {
    const accountIds = sessions.map((target) => target.accountId)
    const serviceIds = sessions.map((target) => target.serviceId)
    await requireIds(tx, 'accounts', accountIds, TYPE, 'session.accounts')
    await requireIds(tx, 'services', serviceIds, TYPE, 'session.accounts')
    const rows = sessions.map(({ accountId, serviceId }) => ({
      account_id: accountId,
      service_id: serviceId,
    }))
    await setLinks(tx, 'target_group_sessions', { target_group_id: id }, rows)
  }
  if (retrievals !== undefined) {
    await requireIds(tx, 'accounts', retrievals, TYPE, 'password_retrieval.accounts')
    const rows = retrievals.map((account) => ({ account_id: account }))
    await setLinks(tx, 'target_group_retrievals', { target_group_id: id }, rows)
  }
}

const LOGINS_FIELD = {
  interactive: 'session.interactive_logins',
  mapping: 'session.account_mappings',
} as const

async function setLogins(
  tx: Tx,
  id: Id,
  kind: keyof typeof LOGINS_FIELD,
  serviceIds: readonly Id[] | undefined,
): Promise<void> {
  if (serviceIds === undefined) return
  await requireIds(tx, 'services', serviceIds, TYPE, LOGINS_FIELD[kind])
  const rows = serviceIds.map((service) => ({ service_id: service }))
  await setLinks(tx, 'target_group_logins', { target_group_id: id, kind }, rows)
}

type Row = GroupRow & { sessions: string; interactive: string; mapping: string; retrievals: string }

function targetGroup(row: Row): TargetGroup {
  return {
    id: row.id,
    groupName: row.group_name,
    description: row.description,
    sessionAccounts: list(row.sessions),
    interactiveServiceIds: list(row.interactive),
    mappingServiceIds: list(row.mapping),
    passwordRetrievalAccountIds: list(row.retrievals),
  }
}

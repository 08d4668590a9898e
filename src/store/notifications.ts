import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import { MAX_NOTIFICATIONS, type Notification } from '../model/notifications.ts'
import type { Id } from '../model/objects.ts'
import { TooManyError } from './engine/errors.ts'
import { jsonList } from './engine/json.ts'
import { setLinks } from './links.ts'
import type { Db, NotificationRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { flag, json, key, list, requireIds, setColumns, type Tx, write } from './query.ts'
import { column, related } from './searchable.ts'
import type { NotificationRepository, NotifiedPlace } from './store.ts'

const TYPE = 'notification'
export const NOTIFICATION_FIELDS = {
  notification_name: column('name', 'name_key'),
  description: column('text', 'description'),
  type: column('label', 'type'),
  is_disabled: column('flag', 'is_disabled'),
  severity: column('label', 'severity'),
  user_groups: related('name', {
    value: sql.ref('notifications.id'),
    from: sql`notification_user_groups as n inner join user_groups as g on g.id = n.group_id`,
    equals: sql.ref('n.notification_id'),
    member: sql.ref('g.name_key'),
  }),
  target_groups: related('name', {
    value: sql.ref('notifications.id'),
    from: sql`notification_target_groups as n inner join target_groups as g on g.id = n.group_id`,
    equals: sql.ref('n.notification_id'),
    member: sql.ref('g.name_key'),
  }),
  id: column('id', 'notifications.id'),
}

export function notificationRepository(context: StoreContext): NotificationRepository {
  const { db } = context
  const named = namedRepository(context, {
    type: TYPE,
    table: 'notifications',
    fields: NOTIFICATION_FIELDS,
    standard: 'notification_name',
    select,
    object: notification,
    nameOf: ({ notificationName }) => notificationName,

    insert: async (tx, id, object: Omit<Notification, 'id'>) => {
      const there = await tx.selectFrom('notifications').select('id').limit(MAX_NOTIFICATIONS).execute()
      if (there.length >= MAX_NOTIFICATIONS) throw new TooManyError(TYPE)
      await tx
        .insertInto('notifications')
        .values({
          id,
          notification_name: object.notificationName,
          name_key: nameKey(object.notificationName),
          description: object.description,
          type: object.type,
          is_disabled: Number(object.isDisabled),
          events: JSON.stringify(object.events),
          severity: object.severity,
          options: JSON.stringify(object.options),
          secrets: '[]',
          secret_revision: 0,
        })
        .execute()
      await setGroups(tx, id, object)
    },

    change: async (tx, id, change) => {
      await setColumns(tx, 'notifications', id, {
        notification_name: change.notificationName,
        name_key: key(change.notificationName),
        description: change.description,
        is_disabled: flag(change.isDisabled),
        events: json(change.events),
        severity: change.severity,
        options: json(change.options),
      })
      await setGroups(tx, id, change)
    },

    requireUnused: async () => undefined,
  })
  return {
    ...named,

    async sealedSecret(id, name) {
      const row = await db
        .selectFrom('notification_secrets')
        .select('sealed')
        .where('notification_id', '=', id)
        .where('name', '=', name)
        .executeTakeFirst()
      return row?.sealed
    },

    setSealedSecret: (id, name, sealed) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        await requireIds(tx, 'notifications', [id], TYPE, 'id')
        const old = tx.deleteFrom('notification_secrets').where('notification_id', '=', id)
        await old.where('name', '=', name).execute()
        if (sealed)
          await tx.insertInto('notification_secrets').values({ notification_id: id, name, sealed }).execute()
        await tx
          .updateTable('notifications')
          .set((e) => ({
            secrets: JSON.stringify(sealed ? [name] : []),
            secret_revision: e('secret_revision', '+', 1),
          }))
          .where('id', '=', id)
          .execute()
      }),

    async isUserIn(user, groupIds) {
      const row = await db
        .selectFrom('user_group_members as m')
        .innerJoin('users as u', 'u.id', 'm.user_id')
        .select('m.group_id')
        .where('u.name_key', '=', nameKey(user))
        .where('m.group_id', 'in', ['', ...groupIds])
        .limit(1)
        .executeTakeFirst()
      return row !== undefined
    },

    async isTargetIn(place, groupIds) {
      const found = await Promise.all([
        sessionsOf(db, place, groupIds),
        loginsOf(db, place, groupIds),
        retrievalsOf(db, place, groupIds),
      ])
      return found.some((rows) => rows.length > 0)
    },
  }
}

/** Returns a row if one of the groups has a session of a stored account there. */
function sessionsOf(db: Db, { account, domain, device, service }: NotifiedPlace, groupIds: readonly Id[]) {
  // Without a domain it is no stored account.
  const stored = account !== undefined && domain !== undefined ? { account, domain } : undefined
  if (device === undefined && !stored) return []
  let query = db
    .selectFrom('target_group_sessions as t')
    .innerJoin('services as s', 's.id', 't.service_id')
    .innerJoin('devices as v', 'v.id', 's.device_id')
    .innerJoin('accounts as a', 'a.id', 't.account_id')
    .innerJoin('domains as d', 'd.id', 'a.domain_id')
    .select('t.target_group_id')
    .where('t.target_group_id', 'in', ['', ...groupIds])
  if (device !== undefined) query = query.where('v.name_key', '=', nameKey(device))
  if (service !== undefined) query = query.where('s.name_key', '=', nameKey(service))
  if (stored)
    query = query
      .where('a.name_key', '=', nameKey(stored.account))
      .where('d.name_key', '=', nameKey(stored.domain))
  return query.limit(1).execute()
}

/** The same for sessions without a stored account. */
function loginsOf(db: Db, { domain, device, service }: NotifiedPlace, groupIds: readonly Id[]) {
  if (device === undefined || domain !== undefined) return []
  let query = db
    .selectFrom('target_group_logins as t')
    .innerJoin('services as s', 's.id', 't.service_id')
    .innerJoin('devices as v', 'v.id', 's.device_id')
    .select('t.target_group_id')
    .where('v.name_key', '=', nameKey(device))
    .where('t.target_group_id', 'in', ['', ...groupIds])
  if (service !== undefined) query = query.where('s.name_key', '=', nameKey(service))
  return query.limit(1).execute()
}

/** The same for the secret of an account. */
function retrievalsOf(db: Db, { account, domain, device, service }: NotifiedPlace, groupIds: readonly Id[]) {
  if (account === undefined || domain === undefined || service !== undefined) return []
  let query = db
    .selectFrom('target_group_retrievals as t')
    .innerJoin('accounts as a', 'a.id', 't.account_id')
    .innerJoin('domains as d', 'd.id', 'a.domain_id')
    .leftJoin('devices as v', 'v.id', 'd.device_id')
    .select('t.target_group_id')
    .where('a.name_key', '=', nameKey(account))
    .where('d.name_key', '=', nameKey(domain))
    .where('t.target_group_id', 'in', ['', ...groupIds])
  if (device !== undefined) query = query.where('v.name_key', '=', nameKey(device))
  return query.limit(1).execute()
}

async function setGroups(
  tx: Tx,
  id: Id,
  { userGroupIds, targetGroupIds }: Partial<Pick<Notification, 'userGroupIds' | 'targetGroupIds'>>,
): Promise<void> {
  const rows = (ids: readonly Id[]) => ids.map((group_id) => ({ group_id }))
  if (userGroupIds) {
    await requireIds(tx, 'user_groups', userGroupIds, TYPE, 'user_groups')
    await setLinks(tx, 'notification_user_groups', { notification_id: id }, rows(userGroupIds))
  }
  if (targetGroupIds) {
    await requireIds(tx, 'target_groups', targetGroupIds, TYPE, 'target_groups')
    await setLinks(tx, 'notification_target_groups', { notification_id: id }, rows(targetGroupIds))
  }
}

function select(db: Db) {
  return db
    .selectFrom('notifications')
    .selectAll('notifications')
    .select([
      sql<string>`(select ${jsonList(sql`n.group_id`, sql`n.group_id`)} from notification_user_groups n
        where n.notification_id = notifications.id)`.as('user_groups'),
      sql<string>`(select ${jsonList(sql`n.group_id`, sql`n.group_id`)} from notification_target_groups n
        where n.notification_id = notifications.id)`.as('target_groups'),
    ])
}

function notification(row: NotificationRow & { user_groups: string; target_groups: string }): Notification {
  return {
    id: row.id,
    notificationName: row.notification_name,
    description: row.description,
    type: row.type,
    isDisabled: row.is_disabled !== 0,
    events: list(row.events),
    severity: row.severity,
    options: JSON.parse(row.options),
    userGroupIds: list(row.user_groups),
    targetGroupIds: list(row.target_groups),
    secretNames: list(row.secrets),
    secretRevision: row.secret_revision,
  } as Notification
}

import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import type { ActsFor, ApiKey, Id } from '../model/objects.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import { rightsFrom } from '../model/profiles.ts'
import { jsonList } from './engine/json.ts'
import { setLinks } from './links.ts'
import type { ApiKeyRow, Db, StoreContext } from './migrations/schema.ts'
import { requireProfile } from './profiles.ts'
import {
  cleared,
  json,
  key,
  list,
  listed,
  requireIds,
  rowFinder,
  setColumns,
  type Tx,
  unchanged,
  write,
} from './query.ts'
import { column, listColumn, nullable, related } from './searchable.ts'
import type { ApiKeyRepository } from './store.ts'

const TYPE = 'API key'
export const API_KEY_FIELDS = {
  key_name: column('name', 'name_key'),
  profile: column('label', 'profile'),
  ip_source: listColumn('text', 'api_keys.ip_source'),
  expiration_date: nullable('time', 'expiration_date'),
  created_at: column('time', 'created_at'),
  users: related('name', {
    value: sql.ref('api_keys.id'),
    from: sql`api_key_users as k inner join users as u on u.id = k.user_id`,
    equals: sql.ref('k.api_key_id'),
    member: sql.ref('u.name_key'),
  }),
  user_groups: related('name', {
    value: sql.ref('api_keys.id'),
    from: sql`api_key_groups as k inner join user_groups as g on g.id = k.group_id`,
    equals: sql.ref('k.api_key_id'),
    member: sql.ref('g.name_key'),
  }),
  id: column('id', 'id'),
}

export function apiKeyRepository({ db, newId }: StoreContext): ApiKeyRepository {
  const find = async (from: Db, idOrName: string): Promise<ApiKey | undefined> => {
    const row = await rowOf(from, idOrName)
    return row && apiKey(row)
  }
  const create = (object: Omit<ApiKey, 'id'>, sha256: Uint8Array | null): Promise<ApiKey> =>
    write(db, { type: TYPE, name: object.keyName }, async (tx) => {
      await requireProfile(tx, TYPE, object.profile)
      const id = newId()
      await tx
        .insertInto('api_keys')
        .values({
          id,
          key_name: object.keyName,
          name_key: nameKey(object.keyName),
          profile: object.profile,
          ip_source: JSON.stringify(object.ipSource),
          expiration_date: object.expirationDate ?? null,
          created_at: object.createdAt,
          sha256,
          is_limited: Number(object.actsFor !== undefined),
          reach: json(object.reach) ?? null,
        })
        .execute()
      await setActsFor(tx, id, object.actsFor)
      return (await find(tx, id))!
    })
  return {
    list: (page) => listed(select(db), apiKey, API_KEY_FIELDS, ['key_name'], page),

    find: (idOrName) => find(db, idOrName),

    // Without a hash the key cannot be used to sign in.
    create: (object) => create(object, null),

    createWithHash: (object, sha256) => create(object, sha256),

    async findByHash(sha256) {
      const row = await select(db).where('sha256', '=', sha256).executeTakeFirst()
      return row && apiKey(row)
    },

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.keyName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        if (change.profile !== undefined) await requireProfile(tx, TYPE, change.profile)
        await setColumns(tx, 'api_keys', id, {
          key_name: change.keyName,
          name_key: key(change.keyName),
          profile: change.profile,
          ip_source: json(change.ipSource),
          expiration_date: cleared(change, 'expirationDate'),
          ...('actsFor' in change && { is_limited: Number(change.actsFor !== undefined) }),
          reach: 'reach' in change ? (json(change.reach) ?? null) : undefined,
        })
        if ('actsFor' in change) await setActsFor(tx, id, change.actsFor)
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await tx.deleteFrom('api_keys').where('id', '=', id).execute()
      }),
  }
}

const rowOf = rowFinder(select)

function select(db: Db) {
  return db
    .selectFrom('api_keys')
    .selectAll('api_keys')
    .select([
      sql<string>`(select ${jsonList(sql`k.user_id`, sql`k.user_id`)} from api_key_users k where k.api_key_id = api_keys.id)`.as(
        'users',
      ),
      sql<string>`(select ${jsonList(sql`k.group_id`, sql`k.group_id`)} from api_key_groups k where k.api_key_id = api_keys.id)`.as(
        'groups',
      ),
    ])
}

async function setActsFor(tx: Tx, id: Id, actsFor: ActsFor | undefined): Promise<void> {
  const { userIds = [], groupIds = [] } = actsFor ?? {}
  await requireIds(tx, 'users', userIds, TYPE, 'users')
  await requireIds(tx, 'user_groups', groupIds, TYPE, 'user_groups')
  const own = { api_key_id: id }
  await setLinks(
    tx,
    'api_key_users',
    own,
    userIds.map((user) => ({ user_id: user })),
  )
  await setLinks(
    tx,
    'api_key_groups',
    own,
    groupIds.map((group) => ({ group_id: group })),
  )
}

function apiKey(row: ApiKeyRow & { users: string; groups: string }): ApiKey {
  return {
    id: row.id,
    keyName: row.key_name,
    profile: row.profile,
    ipSource: list(row.ip_source),
    ...(row.expiration_date !== null && { expirationDate: row.expiration_date }),
    createdAt: row.created_at,
    ...(row.is_limited !== 0 && { actsFor: { userIds: list(row.users), groupIds: list(row.groups) } }),
    ...(row.reach !== null && {
      reach: rightsFrom(JSON.parse(row.reach) as Partial<ProfileRights>),
    }),
  }
}

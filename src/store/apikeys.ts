import { nameKey } from '../model/names.ts'
import type { ApiKey } from '../model/objects.ts'
import { requireProfile } from './profiles.ts'
import { cleared, json, key, list, listed, rowOf, setColumns, unchanged, write } from './query.ts'
import type { ApiKeyRow, Db, StoreContext } from './schema.ts'
import { column, listColumn } from './searchable.ts'
import type { ApiKeyRepository } from './store.ts'

const TYPE = 'API key'
export const API_KEY_FIELDS = {
  key_name: column('name', 'name_key'),
  profile: column('label', 'profile'),
  ip_source: listColumn('text', 'api_keys.ip_source'),
  expiration_date: column('time', 'expiration_date'),
  created_at: column('time', 'created_at'),
  id: column('id', 'id'),
}

export function apiKeyRepository({ db, newId }: StoreContext): ApiKeyRepository {
  const find = async (from: Db, idOrName: string): Promise<ApiKey | undefined> => {
    const row = await rowOf(select(from), idOrName)
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
        })
        .execute()
      return (await find(tx, id))!
    })
  return {
    list: (page) => listed(select(db), apiKey, API_KEY_FIELDS, ['key_name'], page),

    find: (idOrName) => find(db, idOrName),

    // without a hash nobody can sign in by it
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
        })
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await tx.deleteFrom('api_keys').where('id', '=', id).execute()
      }),
  }
}

function select(db: Db) {
  return db.selectFrom('api_keys').selectAll()
}

function apiKey(row: ApiKeyRow): ApiKey {
  return {
    id: row.id,
    keyName: row.key_name,
    profile: row.profile,
    ipSource: list(row.ip_source),
    ...(row.expiration_date !== null && { expirationDate: row.expiration_date }),
    createdAt: row.created_at,
  }
}

import { nameKey } from '../model/names.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import { factoryRights, type Profile, rightsFrom } from '../model/profiles.ts'
import { FactoryError, MissingReferenceError } from './engine/errors.ts'
import type { Db, ProfileRow, StoreContext } from './migrations/schema.ts'
import { key, listed, refuseInUse, rowOf, setColumns, type Tx, unchanged, write } from './query.ts'
import { column } from './searchable.ts'
import type { ProfileRepository } from './store.ts'

const TYPE = 'profile'
export const PROFILE_FIELDS = {
  profile_name: column('name', 'name_key'),
  description: column('text', 'description'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
}

export function profileRepository({ db, newId }: StoreContext): ProfileRepository {
  const find = async (from: Db, idOrName: string): Promise<Profile | undefined> => {
    const row = await rowOf(select(from), idOrName)
    return row && profile(row)
  }
  return {
    list: (page) => listed(select(db), profile, PROFILE_FIELDS, ['profile_name'], page),

    find: (idOrName) => find(db, idOrName),

    async rightsOf(name) {
      return factoryRights(name) ?? (await find(db, name))?.rights
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.profileName }, async (tx) => {
        const id = newId()
        await tx
          .insertInto('profiles')
          .values({
            id,
            profile_name: object.profileName,
            name_key: nameKey(object.profileName),
            description: object.description,
            rights: JSON.stringify(object.rights),
            is_factory: 0,
          })
          .execute()
        return (await find(tx, id))!
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.profileName ?? id }, async (tx) => {
        const old = unchanged(await find(tx, id), TYPE, id, expected)
        if (old.isFactory) throw new FactoryError(TYPE, old.profileName, 'changed')
        await setColumns(tx, 'profiles', id, {
          profile_name: change.profileName,
          name_key: key(change.profileName),
          description: change.description,
          rights: change.rights && JSON.stringify(change.rights),
        })
        if (change.profileName !== undefined) {
          const profile = { profile: change.profileName }
          await tx.updateTable('users').set(profile).where('profile', '=', old.profileName).execute()
          await tx.updateTable('api_keys').set(profile).where('profile', '=', old.profileName).execute()
        }
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const { profileName, isFactory } = unchanged(await find(tx, id), TYPE, id, expected)
        if (isFactory) throw new FactoryError(TYPE, profileName, 'removed')
        const users = tx.selectFrom('users').select('user_name as name').orderBy('name_key')
        const keys = tx.selectFrom('api_keys').select('key_name as name').orderBy('name_key')
        await refuseInUse(TYPE, profileName, [
          { type: 'user', query: users.where('profile', '=', profileName) },
          { type: 'API key', query: keys.where('profile', '=', profileName) },
        ])
        await tx.deleteFrom('profiles').where('id', '=', id).execute()
      }),
  }
}

/**
 * @throws MissingReferenceError if there is no profile with exactly this name: users and keys store the name
 */
export async function requireProfile(tx: Tx, objectType: string, name: string): Promise<void> {
  const row = await tx.selectFrom('profiles').select('id').where('profile_name', '=', name).executeTakeFirst()
  if (!row) throw new MissingReferenceError(objectType, 'profile', name)
}

function select(db: Db) {
  return db.selectFrom('profiles').selectAll()
}

function profile(row: ProfileRow): Profile {
  const rights: ProfileRights =
    (row.is_factory !== 0 ? factoryRights(row.profile_name) : undefined) ?? rightsFrom(JSON.parse(row.rights))
  return {
    id: row.id,
    profileName: row.profile_name,
    description: row.description,
    rights,
    isFactory: row.is_factory !== 0,
  }
}

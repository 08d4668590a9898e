import { nameKey } from '../model/names.ts'
import type { ProfileRights } from '../model/profile-rights.ts'
import { factoryRights, type Profile, rightsFrom } from '../model/profiles.ts'
import { FactoryError, MissingReferenceError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ProfileRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { flag, key, refuseInUse, setColumns, type Tx } from './query.ts'
import { column } from './searchable.ts'
import type { ProfileRepository } from './store.ts'

const TYPE = 'profile'
export const PROFILE_FIELDS = {
  profile_name: column('name', 'name_key'),
  description: column('text', 'description'),
  second_factor: column('label', 'second_factor'),
  second_factor_remember: column('integer', 'second_factor_remember'),
  second_factor_keys: column('flag', 'second_factor_keys'),
  is_factory: column('flag', 'is_factory'),
  id: column('id', 'id'),
}

export function profileRepository(context: StoreContext): ProfileRepository {
  const profiles = namedRepository(context, {
    type: TYPE,
    table: 'profiles',
    fields: PROFILE_FIELDS,
    standard: 'profile_name',
    select,
    object: profile,
    nameOf: ({ profileName }) => profileName,

    insert: async (tx, id, object: Omit<Profile, 'id'>) => {
      await tx
        .insertInto('profiles')
        .values({
          id,
          profile_name: object.profileName,
          name_key: nameKey(object.profileName),
          description: object.description,
          rights: JSON.stringify(object.rights),
          is_factory: 0,
          second_factor: object.secondFactor ?? 'none',
          second_factor_remember: object.secondFactorRemember ?? 0,
          second_factor_keys: object.secondFactorKeys ? 1 : 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      // The rights are built in, and not the way to sign in for them.
      const isPolicy = Object.keys(change).every((key) => key.startsWith('secondFactor'))
      if (old.isFactory && !isPolicy) throw new FactoryError(TYPE, old.profileName, 'changed')
      await setColumns(tx, 'profiles', id, {
        profile_name: change.profileName,
        name_key: key(change.profileName),
        description: change.description,
        rights: change.rights && JSON.stringify(change.rights),
        second_factor: change.secondFactor,
        second_factor_remember: change.secondFactorRemember,
        second_factor_keys: flag(change.secondFactorKeys),
      })
      if (change.profileName !== undefined) {
        const profile = { profile: change.profileName }
        await tx.updateTable('users').set(profile).where('profile', '=', old.profileName).execute()
        await tx.updateTable('api_keys').set(profile).where('profile', '=', old.profileName).execute()
        await tx
          .updateTable('auth_domain_mappings')
          .set(profile)
          .where('profile', '=', old.profileName)
          .execute()
      }
    },

    requireUnused: async (tx, { profileName, isFactory }) => {
      if (isFactory) throw new FactoryError(TYPE, profileName, 'removed')
      const users = tx.selectFrom('users').select('user_name as name').orderBy('name_key')
      const keys = tx.selectFrom('api_keys').select('key_name as name').orderBy('name_key')
      await refuseInUse(TYPE, profileName, [
        { type: 'user', query: users.where('profile', '=', profileName) },
        { type: 'API key', query: keys.where('profile', '=', profileName) },
        {
          type: 'mapping of the authentication domain',
          query: tx
            .selectFrom('auth_domain_mappings as m')
            .innerJoin('auth_domains as d', 'd.id', 'm.auth_domain_id')
            .select('d.domain_name as name')
            .distinct()
            .where('m.profile', '=', profileName)
            .orderBy('name'),
        },
      ])
    },
  })
  return {
    ...profiles,

    async rightsOf(name) {
      return factoryRights(name) ?? (await profiles.find(name))?.rights
    },
  }
}

/**
 * @throws MissingReferenceError if there is no profile with exactly this name: users and keys store the name
 */
export async function requireProfile(tx: Tx, objectType: string, name: string): Promise<void> {
  if ((await idOf(tx, name)).length === 0) throw new MissingReferenceError(objectType, 'profile', name)
}

const idOf = keptQuery((db: Db, name: string) =>
  db.selectFrom('profiles').select('id').where('profile_name', '=', name),
)

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
    ...(row.second_factor === 'required' && { secondFactor: 'required' as const }),
    ...(row.second_factor_remember > 0 && { secondFactorRemember: row.second_factor_remember }),
    ...(row.second_factor_keys !== 0 && { secondFactorKeys: true }),
    isFactory: row.is_factory !== 0,
  }
}

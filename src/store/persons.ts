/** Persons of authentication domains: users who are no local ones, with the rights that mappings give them. */

import { nameKey } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { inTransaction } from './engine/commits.ts'
import { isUniqueViolation } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import {
  byName,
  domainOf,
  isAsWanted,
  mapped,
  type PersonRow,
  personName,
  type Wanted,
  writePerson,
} from './person-rows.ts'
import { provisionedSignIn, unchangedProvisioned } from './provisioned.ts'
import { listed, type Tx } from './query.ts'
import type { PersonRepository, ProvedPerson } from './store.ts'
import { select, USER_FIELDS, user } from './users.ts'

/** Fields by which persons can be searched for. */
export const PERSON_FIELDS = {
  user_name: USER_FIELDS.user_name,
  display_name: USER_FIELDS.display_name,
  email: USER_FIELDS.email,
  profile: USER_FIELDS.profile,
  ssh_public_keys: USER_FIELDS.ssh_public_keys,
  is_disabled: USER_FIELDS.is_disabled,
  groups: USER_FIELDS.groups,
  id: USER_FIELDS.id,
}
/** Sign-ins of one person at once, of which the first has to write a row. */
const MAX_ATTEMPTS = 3

export function personRepository({ db, newId }: StoreContext): PersonRepository {
  return {
    list: (page, domainId) =>
      listed(select(db).where('auth_domain_id', '=', domainId), user, PERSON_FIELDS, ['user_name'], page),

    signedIn: async (domainId, person) => {
      const kept = await unchangedPerson(db, domainId, person)
      if (kept) return kept
      for (let attempt = 1; ; attempt++) {
        try {
          return await inTransaction(db, (tx) => signIn(tx, newId, domainId, person))
        } catch (error) {
          // Another process has made the same person since.
          if (!isUniqueViolation(error) || MAX_ATTEMPTS <= attempt) throw error
        }
      }
    },

    mappedTo: async (domainId, groups) => {
      const given = await mapped(db, domainId, groups)
      return given && { groupIds: given.groups, profile: given.profile }
    },

    suspend: async (id) => {
      const rows = db.updateTable('users').set({ is_disabled: 1 }).where('id', '=', id)
      await rows.where('auth_domain_id', 'is not', null).execute()
      await db.deleteFrom('offline_proofs').where('user_id', '=', id).execute()
    },

    remove: async (id) => {
      const rows = db.deleteFrom('users').where('id', '=', id).where('auth_domain_id', 'is not', null)
      const { numDeletedRows } = await rows.executeTakeFirstOrThrow()
      return numDeletedRows > 0n
    },
  }
}

const byStableId = keptQuery((db: Db, domainId: Id, stableId: string) =>
  select(db).where('auth_domain_id', '=', domainId).where('stable_id', '=', stableId),
)

/** Names of one key may be two names at the server, as `ß` and `ss`: those that differ in case alone are one. */
const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

async function rowOf(
  from: Db,
  domainId: Id,
  name: string,
  { stableId }: ProvedPerson,
): Promise<PersonRow | undefined> {
  if (stableId !== undefined) return (await byStableId(from, domainId, stableId))[0]
  return (await byName(from, nameKey(name))).find(
    (row) => row.auth_domain_id === domainId && row.stable_id === '' && isSameName(row.user_name, name),
  )
}

/** Returns the person if nothing about them has to be written. */
async function unchangedPerson(db: Db, domainId: Id, person: ProvedPerson): Promise<User | undefined> {
  const [domain] = await domainOf(db, domainId)
  if (domain && domain.scim_identifier !== null)
    return await unchangedProvisioned(db, domainId, domain, person)
  const name = domain && personName(person.userName, domain.domain_name)
  if (name === undefined) return undefined
  const row = await rowOf(db, domainId, name, person)
  const given = row && (await mapped(db, domainId, person.groups))
  if (!given) return undefined
  return (await isAsWanted(db, row, wantedOf(domainId, name, person, given))) ? user(row) : undefined
}

async function signIn(
  tx: Tx,
  newId: () => string,
  domainId: Id,
  person: ProvedPerson,
): Promise<User | undefined> {
  const [domain] = await domainOf(tx, domainId)
  if (domain && domain.scim_identifier !== null)
    return await provisionedSignIn(tx, newId, domainId, domain, person)
  const name = domain && personName(person.userName, domain.domain_name)
  if (name === undefined) return undefined
  const given = await mapped(tx, domainId, person.groups)
  const old = await rowOf(tx, domainId, name, person)
  if (!given) {
    if (old) await tx.deleteFrom('users').where('id', '=', old.id).execute()
    return undefined
  }
  return await writePerson(tx, newId, old, wantedOf(domainId, name, person, given))
}

function wantedOf(domainId: Id, name: string, person: ProvedPerson, given: Wanted['given']): Wanted {
  return {
    domainId,
    name,
    stableId: person.stableId ?? '',
    displayName: person.displayName ?? '',
    email: person.email ?? '',
    publicKeys: person.publicKeys ?? [],
    isDisabled: false,
    given,
  }
}

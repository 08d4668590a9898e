/** Persons of authentication domains: users who are no local ones, with the rights that mappings give them. */

import { groupKey } from '../model/group-names.ts'
import { lookKey, nameKey, userNameError } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { inTransaction } from './engine/commits.ts'
import { isUniqueViolation } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import { setLinks } from './links.ts'
import type { Db, StoreContext } from './migrations/schema.ts'
import { listed, setColumns, type Tx } from './query.ts'
import type { PersonRepository, ProvedPerson } from './store.ts'
import { likeRow, select, USER_FIELDS, user } from './users.ts'

/** The fallback: for persons without another mapping. */
const ANY = '*'

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

interface Mapped {
  /** Ids of the mappings, in their order. */
  mappings: Id[]
  groups: Id[]
  profile: string
}

const mappingsOf = keptQuery((db: Db, domainId: Id) =>
  db.selectFrom('auth_domain_mappings').selectAll().where('auth_domain_id', '=', domainId).orderBy('id'),
)
const domainName = keptQuery((db: Db, id: Id) =>
  db.selectFrom('auth_domains').select('domain_name').where('id', '=', id),
)
const matchedBefore = keptQuery((db: Db, userId: Id) =>
  db.selectFrom('person_mappings').select('mapping_id').where('user_id', '=', userId).orderBy('mapping_id'),
)
const byStableId = keptQuery((db: Db, domainId: Id, stableId: string) =>
  select(db).where('auth_domain_id', '=', domainId).where('stable_id', '=', stableId),
)
const byName = keptQuery((db: Db, name: string) => select(db).where('name_key', '=', name))

/** Returns what the mappings give; undefined if none matches. The first one, by age, gives the profile. */
async function mapped(from: Db, domainId: Id, groups: readonly string[]): Promise<Mapped | undefined> {
  const all = await mappingsOf(from, domainId)
  const keys = new Set(groups.map(groupKey))
  const matching = all.filter(
    ({ external_group, group_key }) => external_group !== ANY && keys.has(group_key),
  )
  const chosen = matching.length > 0 ? matching : all.filter(({ external_group }) => external_group === ANY)
  const [first] = chosen
  if (!first) return undefined
  return {
    mappings: chosen.map(({ id }) => id),
    groups: [...new Set(chosen.map(({ user_group_id }) => user_group_id))].sort(),
    profile: first.profile,
  }
}

type Row = Awaited<ReturnType<typeof byName>>[number]

/** Names of one key may be two names at the server, as `ß` and `ss`: those that differ in case alone are one. */
const isSameName = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase()

async function rowOf(
  from: Db,
  domainId: Id,
  name: string,
  { stableId }: ProvedPerson,
): Promise<Row | undefined> {
  if (stableId !== undefined) return (await byStableId(from, domainId, stableId))[0]
  return (await byName(from, nameKey(name))).find(
    (row) => row.auth_domain_id === domainId && row.stable_id === '' && isSameName(row.user_name, name),
  )
}

/** Returns the person if nothing about them has to be written. */
async function unchangedPerson(db: Db, domainId: Id, person: ProvedPerson): Promise<User | undefined> {
  const [domain] = await domainName(db, domainId)
  const name = domain && nameOf(person, domain.domain_name)
  if (name === undefined) return undefined
  const row = await rowOf(db, domainId, name, person)
  const given = row && (await mapped(db, domainId, person.groups))
  if (!given) return undefined
  const found = user(row)
  const before = await matchedBefore(db, row.id)
  const isSame =
    !found.isDisabled &&
    found.userName === name &&
    found.displayName === (person.displayName ?? '') &&
    found.email === (person.email ?? '') &&
    found.sshPublicKeys.join('\n') === (person.publicKeys ?? []).join('\n') &&
    found.profile === given.profile &&
    [...found.groupIds].sort().join() === given.groups.join() &&
    before.map(({ mapping_id }) => mapping_id).join() === [...given.mappings].sort().join()
  return isSame ? found : undefined
}

async function signIn(
  tx: Tx,
  newId: () => string,
  domainId: Id,
  person: ProvedPerson,
): Promise<User | undefined> {
  const [domain] = await domainName(tx, domainId)
  const name = domain && nameOf(person, domain.domain_name)
  if (name === undefined) return undefined
  const given = await mapped(tx, domainId, person.groups)
  const old = await rowOf(tx, domainId, name, person)
  if (!given) {
    if (old) await tx.deleteFrom('users').where('id', '=', old.id).execute()
    return undefined
  }
  // A name that another person of the domain had before is free again: their rights are not handed on.
  const [holder] = await byName(tx, nameKey(name))
  if (holder && holder.id !== old?.id) {
    if (holder.auth_domain_id !== domainId) return undefined
    // Without an id the name is all that tells persons apart: another spelling may be another one.
    if (person.stableId === undefined) return undefined
    await tx.deleteFrom('users').where('id', '=', holder.id).execute()
  }
  if (await likeRow(tx, name, old?.id)) return undefined
  const id = old?.id ?? newId()
  const columns = {
    user_name: name,
    name_key: nameKey(name),
    look: lookKey(name) === nameKey(name) ? null : lookKey(name),
    display_name: person.displayName ?? '',
    email: person.email ?? '',
    profile: given.profile,
    is_disabled: 0,
    ssh_public_keys: JSON.stringify(person.publicKeys ?? []),
  }
  if (old) await setColumns(tx, 'users', id, columns)
  else {
    await insertRow(tx, 'users', {
      ...columns,
      id,
      user_auths: '[]',
      secondary_auth: '[]',
      is_locked: 0,
      expiration_date: null,
      ip_source: '[]',
      password_hash: null,
      sealed_password_hash: null,
      secret_revision: 0,
      auth_domain_id: domainId,
      stable_id: person.stableId ?? '',
    })
  }
  await setLinks(
    tx,
    'user_group_members',
    { user_id: id },
    given.groups.map((group_id) => ({ group_id })),
  )
  await setLinks(
    tx,
    'person_mappings',
    { user_id: id },
    given.mappings.map((mapping_id) => ({ mapping_id })),
  )
  const [row] = await byName(tx, nameKey(name))
  return row && user(row)
}

/** Returns `NAME@DOMAIN`, or undefined for a name that no user can have. */
function nameOf({ userName }: ProvedPerson, domain: string): string | undefined {
  const name = `${userName.normalize('NFC')}@${domain}`
  return userName === '' || userNameError(name) !== undefined ? undefined : name
}

/** Rows of persons, for sign-ins and provisioning: the gifts of mappings, and the writing of both. */

import { groupKey } from '../model/group-names.ts'
import { lookKey, nameKey, userNameError } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import { setLinks } from './links.ts'
import type { Db } from './migrations/schema.ts'
import { setColumns, type Tx } from './query.ts'
import { likeRow, select, user } from './users.ts'

/** The fallback: for persons without another mapping. */
const ANY = '*'

export interface Mapped {
  /** Ids of the mappings, in their order. */
  mappings: Id[]
  groups: Id[]
  profile: string
}

const mappingsOf = keptQuery((db: Db, domainId: Id) =>
  db.selectFrom('auth_domain_mappings').selectAll().where('auth_domain_id', '=', domainId).orderBy('id'),
)
const matchedBefore = keptQuery((db: Db, userId: Id) =>
  db.selectFrom('person_mappings').select('mapping_id').where('user_id', '=', userId).orderBy('mapping_id'),
)
export const domainOf = keptQuery((db: Db, id: Id) =>
  db.selectFrom('auth_domains').select(['domain_name', 'scim_identifier']).where('id', '=', id),
)
export const byName = keptQuery((db: Db, name: string) => select(db).where('name_key', '=', name))

export type PersonRow = Awaited<ReturnType<typeof byName>>[number]

/** Returns what the mappings give; undefined if none matches. The first one, by age, gives the profile. */
export async function mapped(from: Db, domainId: Id, groups: readonly string[]): Promise<Mapped | undefined> {
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

/** Whether members of one of these groups have something of a mapping, other than as everybody. */
export async function isMapped(from: Db, domainId: Id, groups: readonly string[]): Promise<boolean> {
  const keys = new Set(groups.map(groupKey))
  const all = await mappingsOf(from, domainId)
  return all.some(({ external_group, group_key }) => external_group !== ANY && keys.has(group_key))
}

/** Returns `NAME@DOMAIN`, or undefined for a name that no user can have. */
export function personName(userName: string, domain: string): string | undefined {
  const name = `${userName.normalize('NFC')}@${domain}`
  return userName === '' || userNameError(name) !== undefined ? undefined : name
}

/** A person as wanted. */
export interface Wanted {
  domainId: Id
  /** With the domain. */
  name: string
  stableId: string
  displayName: string
  email: string
  publicKeys: readonly string[]
  isDisabled: boolean
  given: Mapped
}

/** Whether nothing has to be written for the person to be so. */
export async function isAsWanted(db: Db, row: PersonRow, wanted: Wanted): Promise<boolean> {
  const { name, displayName, email, publicKeys, isDisabled, given } = wanted
  const found = user(row)
  const isSame =
    found.isDisabled === isDisabled &&
    found.userName === name &&
    found.displayName === displayName &&
    found.email === email &&
    found.sshPublicKeys.join('\n') === publicKeys.join('\n') &&
    found.profile === given.profile &&
    row.stable_id === wanted.stableId &&
    [...found.groupIds].sort().join() === given.groups.join()
  if (!isSame) return false
  const before = await matchedBefore(db, row.id)
  return before.map(({ mapping_id }) => mapping_id).join() === [...given.mappings].sort().join()
}

/** Writes the person in place of `old`, or as a new one. Returns undefined if another user keeps the name. */
export async function writePerson(
  tx: Tx,
  newId: () => string,
  old: PersonRow | undefined,
  { domainId, name, stableId, displayName, email, publicKeys, isDisabled, given }: Wanted,
): Promise<User | undefined> {
  // A name that another person of the domain had before is free again: their rights are not handed on.
  const [holder] = await byName(tx, nameKey(name))
  if (holder && holder.id !== old?.id) {
    if (holder.auth_domain_id !== domainId) return undefined
    // Without an id the name is all that tells persons apart: another spelling may be another one.
    if (stableId === '') return undefined
    await tx.deleteFrom('users').where('id', '=', holder.id).execute()
  }
  if (await likeRow(tx, name, old?.id)) return undefined
  const id = old?.id ?? newId()
  const columns = {
    user_name: name,
    name_key: nameKey(name),
    look: lookKey(name) === nameKey(name) ? null : lookKey(name),
    display_name: displayName,
    email,
    profile: given.profile,
    is_disabled: Number(isDisabled),
    ssh_public_keys: JSON.stringify(publicKeys),
    stable_id: stableId,
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

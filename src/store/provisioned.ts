/**
 * Persons of a domain with provisioning: SCIM says who they are, and which groups they are in; a sign-in only proves that they
 * are it. A user that is not active, or has no mapping, is a person without access, or none yet.
 */
import { nameKey } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { LastAdministratorError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ScimUserRow } from './migrations/schema.ts'
import {
  domainOf,
  isAsWanted,
  type Mapped,
  mapped,
  type PersonRow,
  personName,
  type Wanted,
  writePerson,
} from './person-rows.ts'
import type { Tx } from './query.ts'
import type { ProvedPerson } from './store.ts'
import { select, user } from './users.ts'

const ADMINISTRATOR = 'product_administrator'
const NOTHING: Mapped = { mappings: [], groups: [], profile: 'user' }

type DomainRow = Awaited<ReturnType<typeof domainOf>>[number]

const byUserId = keptQuery((db: Db, id: Id) => select(db).where('users.id', '=', id))
const scimUser = keptQuery((db: Db, id: Id) => db.selectFrom('scim_users').selectAll().where('id', '=', id))
const boundTo = keptQuery((db: Db, domainId: Id, stableId: string) =>
  db
    .selectFrom('scim_users')
    .selectAll()
    .where('auth_domain_id', '=', domainId)
    .where('stable_id', '=', stableId),
)
const unboundByExternalId = keptQuery((db: Db, domainId: Id, externalId: string) =>
  db
    .selectFrom('scim_users')
    .selectAll()
    .where('auth_domain_id', '=', domainId)
    .where('external_id', '=', externalId)
    .where('stable_id', '=', ''),
)
const unboundByName = keptQuery((db: Db, domainId: Id, key: string) =>
  db
    .selectFrom('scim_users')
    .selectAll()
    .where('auth_domain_id', '=', domainId)
    .where('name_key', '=', key)
    .where('stable_id', '=', ''),
)
const groupsOf = keptQuery((db: Db, id: Id) =>
  db
    .selectFrom('scim_members as m')
    .innerJoin('scim_groups as g', 'g.id', 'm.group_id')
    .select(['g.display_name', 'g.external_id'])
    .where('m.user_id', '=', id),
)
const serversOf = keptQuery((db: Db, domainId: Id) =>
  db
    .selectFrom('auth_domain_auths')
    .select('external_auth_id')
    .where('auth_domain_id', '=', domainId)
    .where('factor', '=', 1),
)

/** Returns the person if nothing about them has to be written. */
export async function unchangedProvisioned(
  db: Db,
  domainId: Id,
  domain: DomainRow,
  person: ProvedPerson,
): Promise<User | undefined> {
  const row = await scimUserOf(db, domainId, domain, person)
  if (!row || row.is_active === 0 || row.user_id === null || row.stable_id !== (person.stableId ?? ''))
    return undefined
  const [old] = await byUserId(db, row.user_id)
  const wanted = old && (await wantedOf(db, domain, row, old, person))
  return wanted && !wanted.isDisabled && (await isAsWanted(db, old, wanted)) ? user(old) : undefined
}

/** Binds the sign-in to its user. Returns undefined if there is none, or it has no access. */
export async function provisionedSignIn(
  tx: Tx,
  newId: () => string,
  domainId: Id,
  domain: DomainRow,
  person: ProvedPerson,
): Promise<User | undefined> {
  const row = await scimUserOf(tx, domainId, domain, person)
  if (!row || row.is_active === 0) return undefined
  const stableId = person.stableId ?? ''
  if (row.stable_id !== stableId)
    await tx.updateTable('scim_users').set({ stable_id: stableId }).where('id', '=', row.id).execute()
  const found = await written(tx, newId, domain, { ...row, stable_id: stableId }, person)
  return found && !found.isDisabled ? found : undefined
}

/** Makes the person of a user what its attributes and groups say. @throws LastAdministratorError */
export async function syncPerson(tx: Tx, newId: () => string, scimUserId: Id): Promise<void> {
  const [row] = await scimUser(tx, scimUserId)
  const [domain] = row ? await domainOf(tx, row.auth_domain_id) : []
  if (row && domain) await written(tx, newId, domain, row)
}

/**
 * Runs a change that may take the profile of an administrator from the person.
 * @throws LastAdministratorError if no administrator would be left
 */
export async function keepingAdministrators<T>(
  tx: Tx,
  person: PersonRow | undefined,
  change: () => Promise<T>,
): Promise<T> {
  const was = person !== undefined && person.is_disabled === 0 && person.profile === ADMINISTRATOR
  const done = await change()
  if (was && !(await hasAdministrator(tx))) throw new LastAdministratorError()
  return done
}

/** Whether a person, or a local user by password, has all rights. */
async function hasAdministrator(tx: Tx): Promise<boolean> {
  const row = await tx
    .selectFrom('users')
    .select('id')
    .where('profile', '=', ADMINISTRATOR)
    .where('is_disabled', '=', 0)
    .where('is_locked', '=', 0)
    .where('expiration_date', 'is', null)
    .where((e) =>
      e.or([
        e('auth_domain_id', 'is not', null),
        e.and([e('user_auths', 'like', '%"local_password"%'), e('sealed_password_hash', 'is not', null)]),
      ]),
    )
    .executeTakeFirst()
  return row !== undefined
}

/**
 * Returns the user of a sign-in: the one that its id is bound to, else one that no sign-in has had, by the domain's rule. A
 * `sub` of OpenID Connect, whose id begins with the issuer, may be provisioned alone if the domain has one issuer.
 */
async function scimUserOf(
  db: Db,
  domainId: Id,
  { scim_identifier }: DomainRow,
  { stableId, userName }: ProvedPerson,
): Promise<ScimUserRow | undefined> {
  if (stableId !== undefined) {
    const [bound] = await boundTo(db, domainId, stableId)
    if (bound) return bound
  }
  if (scim_identifier === 'user_name') return (await unboundByName(db, domainId, nameKey(userName)))[0]
  if (stableId === undefined) return undefined
  const [whole] = await unboundByExternalId(db, domainId, stableId)
  if (whole || !stableId.includes(' ') || (await serversOf(db, domainId)).length !== 1) return whole
  return (await unboundByExternalId(db, domainId, stableId.slice(stableId.indexOf(' ') + 1)))[0]
}

async function written(
  tx: Tx,
  newId: () => string,
  domain: DomainRow,
  row: ScimUserRow,
  shown?: ProvedPerson,
): Promise<User | undefined> {
  const [old] = row.user_id === null ? [] : await byUserId(tx, row.user_id)
  const wanted = await wantedOf(tx, domain, row, old, shown)
  // A person without access is made once they have it.
  if (!old && wanted?.isDisabled !== false) return undefined
  if (old && wanted && (await isAsWanted(tx, old, wanted))) return user(old)
  return await keepingAdministrators(tx, old, async () => {
    const found = wanted && (await writePerson(tx, newId, old, wanted))
    // The name is another user's.
    if (!found && old)
      await tx.updateTable('users').set({ is_disabled: 1 }).where('id', '=', old.id).execute()
    if (found && found.id !== row.user_id)
      await tx.updateTable('scim_users').set({ user_id: found.id }).where('id', '=', row.id).execute()
    return found
  })
}

/** `shown`: the person of a sign-in; without one, keys of the last one stay. */
async function wantedOf(
  db: Db,
  domain: DomainRow,
  row: ScimUserRow,
  old: PersonRow | undefined,
  shown?: ProvedPerson,
): Promise<Wanted | undefined> {
  const name = personName(row.user_name, domain.domain_name)
  if (name === undefined) return undefined
  const groups = (await groupsOf(db, row.id)).flatMap(({ display_name, external_id }) =>
    external_id === null ? [display_name] : [display_name, external_id],
  )
  const given = await mapped(db, row.auth_domain_id, groups)
  const { displayName, email } = shownAttributes(row.more)
  return {
    domainId: row.auth_domain_id,
    name,
    stableId: row.stable_id,
    displayName: displayName ?? shown?.displayName ?? '',
    email: email ?? shown?.email ?? '',
    publicKeys: shown ? (shown.publicKeys ?? []) : old ? (JSON.parse(old.ssh_public_keys) as string[]) : [],
    isDisabled: row.is_active === 0 || !given,
    given: given ?? NOTHING,
  }
}

interface More {
  displayName?: string
  name?: { formatted?: string; givenName?: string; familyName?: string }
  emails?: { value?: string; primary?: boolean }[]
}

function shownAttributes(json: string): { displayName: string | undefined; email: string | undefined } {
  const { displayName, name = {}, emails = [] } = JSON.parse(json) as More
  const parts = [name.givenName, name.familyName].filter((part) => part !== undefined).join(' ')
  const email = (emails.find(({ primary }) => primary) ?? emails[0])?.value
  return { displayName: displayName ?? name.formatted ?? (parts === '' ? undefined : parts), email }
}

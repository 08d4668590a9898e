import { sql } from 'kysely'
import type { AuthDomain, AuthDomainMapping, ScimIdentifier } from '../model/external-auths.ts'
import { groupKey } from '../model/group-names.ts'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { jsonList } from './engine/json.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { AuthDomainMappingRow, AuthDomainRow, Db, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { requireProfile } from './profiles.ts'
import {
  cleared,
  flag,
  json,
  key,
  list,
  listed,
  requireIds,
  setColumns,
  type Tx,
  unchanged,
  write,
} from './query.ts'
import { column, related } from './searchable.ts'
import type { AuthDomainMappingRepository, AuthDomainRepository } from './store.ts'

const TYPE = 'authentication domain'
const MAPPING = 'mapping'
export const AUTH_DOMAIN_FIELDS = {
  domain_name: column('name', 'name_key'),
  description: column('text', 'description'),
  type: column('label', 'type'),
  is_default: column('flag', 'is_default'),
  external_auths: related('name', {
    value: sql.ref('auth_domains.id'),
    from: sql`auth_domain_auths as a inner join external_auths as x on x.id = a.external_auth_id`,
    equals: sql.ref('a.auth_domain_id'),
    member: sql.ref('x.name_key'),
  }),
  id: column('id', 'auth_domains.id'),
} as const
export const AUTH_DOMAIN_MAPPING_FIELDS = {
  external_group: column('text', 'external_group'),
  profile: column('label', 'profile'),
  id: column('id', 'auth_domain_mappings.id'),
} as const

/** A domain that is removed or renamed forgets its persons: their sessions end. */
export function authDomainRepository(context: StoreContext): AuthDomainRepository {
  const { db } = context
  const named = namedRepository(context, {
    type: TYPE,
    table: 'auth_domains',
    fields: AUTH_DOMAIN_FIELDS,
    standard: 'domain_name',
    select,
    object: authDomain,
    nameOf: ({ domainName }) => domainName,

    insert: async (tx, id, object: Omit<AuthDomain, 'id'>) => {
      if (object.isDefault) await clearDefault(tx)
      await tx
        .insertInto('auth_domains')
        .values({
          id,
          domain_name: object.domainName,
          name_key: nameKey(object.domainName),
          description: object.description,
          type: object.type,
          is_default: Number(object.isDefault),
          attributes: JSON.stringify(object.attributes),
          default_language: object.defaultLanguage,
          scim_identifier: object.scimIdentifier ?? null,
        })
        .execute()
      await setAuths(tx, id, 1, object.externalAuthIds)
      await setAuths(tx, id, 2, object.secondaryAuthIds)
    },

    change: async (tx, id, change, old) => {
      if (change.isDefault && !old.isDefault) await clearDefault(tx)
      const isRenamed =
        change.domainName !== undefined && nameKey(change.domainName) !== nameKey(old.domainName)
      const asksOthers =
        change.externalAuthIds !== undefined && change.externalAuthIds.join() !== old.externalAuthIds.join()
      if (isRenamed || asksOthers) await forgetPersons(tx, id)
      if ('scimIdentifier' in change && change.scimIdentifier !== old.scimIdentifier) {
        await forgetPersons(tx, id)
        await forgetProvisioned(tx, id)
      }
      await setColumns(tx, 'auth_domains', id, {
        domain_name: change.domainName,
        name_key: key(change.domainName),
        description: change.description,
        is_default: flag(change.isDefault),
        attributes: json(change.attributes),
        default_language: change.defaultLanguage,
        scim_identifier: cleared(change, 'scimIdentifier'),
      })
      if (change.externalAuthIds) await setAuths(tx, id, 1, change.externalAuthIds)
      if (change.secondaryAuthIds) await setAuths(tx, id, 2, change.secondaryAuthIds)
    },

    requireUnused: async (tx, { id }) => {
      await forgetPersons(tx, id)
    },
  })
  return {
    ...named,

    async standard() {
      const [row] = await defaultOf(db)
      return row && authDomain(row)
    },
  }
}

const defaultOf = keptQuery((db: Db) => select(db).where('is_default', '=', 1))

async function clearDefault(tx: Tx): Promise<void> {
  await tx.updateTable('auth_domains').set({ is_default: 0 }).where('is_default', '=', 1).execute()
}

async function forgetPersons(tx: Tx, domainId: Id): Promise<void> {
  await tx.deleteFrom('users').where('auth_domain_id', '=', domainId).execute()
  // Other servers show other ids.
  await tx.updateTable('scim_users').set({ stable_id: '' }).where('auth_domain_id', '=', domainId).execute()
}

async function forgetProvisioned(tx: Tx, domainId: Id): Promise<void> {
  await tx.deleteFrom('scim_groups').where('auth_domain_id', '=', domainId).execute()
  await tx.deleteFrom('scim_users').where('auth_domain_id', '=', domainId).execute()
}

async function setAuths(tx: Tx, domainId: Id, factor: number, ids: readonly Id[]): Promise<void> {
  await requireIds(tx, 'external_auths', ids, TYPE, factor === 1 ? 'external_auths' : 'secondary_auth')
  const rows = tx.deleteFrom('auth_domain_auths').where('auth_domain_id', '=', domainId)
  await rows.where('factor', '=', factor).execute()
  for (const [position, external_auth_id] of ids.entries()) {
    await tx
      .insertInto('auth_domain_auths')
      .values({ auth_domain_id: domainId, factor, position, external_auth_id })
      .execute()
  }
}

const authsOf = (factor: number) =>
  sql<string>`(select ${jsonList(sql`a.external_auth_id`, sql`a.position`)} from auth_domain_auths a where a.auth_domain_id = auth_domains.id and a.factor = ${sql.lit(factor)})`

function select(db: Db) {
  return db
    .selectFrom('auth_domains')
    .selectAll('auth_domains')
    .select([authsOf(1).as('first'), authsOf(2).as('second')])
}

function authDomain(row: AuthDomainRow & { first: string; second: string }): AuthDomain {
  return {
    id: row.id,
    domainName: row.domain_name,
    description: row.description,
    type: row.type as AuthDomain['type'],
    isDefault: row.is_default !== 0,
    externalAuthIds: list(row.first),
    secondaryAuthIds: list(row.second),
    attributes: JSON.parse(row.attributes),
    defaultLanguage: row.default_language as AuthDomain['defaultLanguage'],
    ...(row.scim_identifier !== null && { scimIdentifier: row.scim_identifier as ScimIdentifier }),
  }
}

/**
 * A mapping that is removed or changed takes from its persons at once what no other one gives them; a person without any is
 * forgotten. What a mapping gives is theirs from their next sign-in on.
 */
export function authDomainMappingRepository({ db, newId }: StoreContext): AuthDomainMappingRepository {
  const find = async (from: Db, id: string) => {
    const [row] = await mappingRow(from, id.toUpperCase())
    return row && mapping(row)
  }
  return {
    list: (page, domainId) => {
      const all = selectMappings(db)
      const own = domainId === undefined ? all : all.where('auth_domain_id', '=', domainId)
      return listed(own, mapping, AUTH_DOMAIN_MAPPING_FIELDS, ['external_group'], page)
    },

    find: (id) => find(db, id),

    create: (object) =>
      write(db, { type: MAPPING, name: object.externalGroup }, async (tx) => {
        await requireIds(tx, 'auth_domains', [object.authDomainId], MAPPING, 'domain')
        await requireIds(tx, 'user_groups', [object.userGroupId], MAPPING, 'user_group')
        await requireProfile(tx, MAPPING, object.profile)
        const id = newId()
        await tx
          .insertInto('auth_domain_mappings')
          .values({
            id,
            auth_domain_id: object.authDomainId,
            user_group_id: object.userGroupId,
            external_group: object.externalGroup,
            group_key: groupKey(object.externalGroup),
            profile: object.profile,
          })
          .execute()
        return { ...object, id }
      }),

    update: (id, change, expected) =>
      write(db, { type: MAPPING, name: change.externalGroup ?? id }, async (tx) => {
        const old = unchanged(await find(tx, id), MAPPING, id, expected)
        if (change.userGroupId !== undefined)
          await requireIds(tx, 'user_groups', [change.userGroupId], MAPPING, 'user_group')
        if (change.profile !== undefined) await requireProfile(tx, MAPPING, change.profile)
        await setColumns(tx, 'auth_domain_mappings', id, {
          user_group_id: change.userGroupId,
          external_group: change.externalGroup,
          group_key: change.externalGroup === undefined ? undefined : groupKey(change.externalGroup),
          profile: change.profile,
        })
        const now = (await find(tx, id))!
        const isOther = groupKey(now.externalGroup) !== groupKey(old.externalGroup)
        if (isOther || now.userGroupId !== old.userGroupId || now.profile !== old.profile)
          await withdraw(tx, old)
        return now
      }),

    remove: (id, expected) =>
      write(db, { type: MAPPING, name: id }, async (tx) => {
        const old = unchanged(await find(tx, id), MAPPING, id, expected)
        await withdraw(tx, old)
        await tx.deleteFrom('auth_domain_mappings').where('id', '=', id).execute()
      }),
  }
}

/** Takes from all persons who matched the mapping what none of their others gives. */
async function withdraw(tx: Tx, { id, userGroupId, profile }: AuthDomainMapping): Promise<void> {
  const matched = await tx
    .selectFrom('person_mappings')
    .select('user_id')
    .where('mapping_id', '=', id)
    .execute()
  await tx.deleteFrom('person_mappings').where('mapping_id', '=', id).execute()
  for (const { user_id } of matched) {
    const left = await tx
      .selectFrom('person_mappings as p')
      .innerJoin('auth_domain_mappings as m', 'm.id', 'p.mapping_id')
      .select(['m.user_group_id as group', 'm.profile'])
      .where('p.user_id', '=', user_id)
      .orderBy('m.id')
      .execute()
    if (left.length === 0) {
      await tx.deleteFrom('users').where('id', '=', user_id).execute()
      continue
    }
    if (!left.some((one) => one.group === userGroupId)) {
      const rows = tx.deleteFrom('user_group_members').where('user_id', '=', user_id)
      await rows.where('group_id', '=', userGroupId).execute()
    }
    const next = left[0]!.profile
    if (next !== profile) await setColumns(tx, 'users', user_id, { profile: next })
  }
}

const mappingRow = keptQuery((db: Db, id: string) => selectMappings(db).where('id', '=', id))

function selectMappings(db: Db) {
  return db.selectFrom('auth_domain_mappings').selectAll()
}

function mapping(row: AuthDomainMappingRow): AuthDomainMapping {
  return {
    id: row.id,
    authDomainId: row.auth_domain_id,
    userGroupId: row.user_group_id,
    externalGroup: row.external_group,
    profile: row.profile,
  }
}

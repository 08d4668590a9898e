/** Users as providers have described them by SCIM. Each is found in its own domain only. */
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { ChangedError, DuplicateError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ScimUserRow, StoreContext } from './migrations/schema.ts'
import { domainOf, personName } from './person-rows.ts'
import { keepingAdministrators, syncPerson } from './provisioned.ts'
import { type Tx, write } from './query.ts'
import type { NewScimUser, ScimPlace, ScimUser, ScimUserRepository } from './store.ts'
import { likeRow, select as selectUsers } from './users.ts'

const TYPE = 'user'

export function scimUserRepository({ db, newId }: StoreContext): ScimUserRepository {
  return {
    count: async (domainId) => (await counted(db, domainId))[0]!.total,

    some: async (domainId, { after = '', offset = 0, limit }: ScimPlace) => {
      const rows = db.selectFrom('scim_users').selectAll().where('auth_domain_id', '=', domainId)
      return (await rows.where('id', '>', after).orderBy('id').limit(limit).offset(offset).execute()).map(
        scimUser,
      )
    },

    find: async (domainId, id) => {
      const [row] = await byId(db, domainId, id.toUpperCase())
      return row && scimUser(row)
    },

    findBy: async (domainId, field, value) => {
      const [row] =
        field === 'name'
          ? await byName(db, domainId, nameKey(value))
          : await byExternalId(db, domainId, value)
      return row && scimUser(row)
    },

    groupsOf: async (ids) => {
      if (ids.length === 0) return []
      const rows = db.selectFrom('scim_members as m').innerJoin('scim_groups as g', 'g.id', 'm.group_id')
      return await rows
        .select(['m.user_id as userId', 'g.id as groupId', 'g.display_name as displayName'])
        .where('m.user_id', 'in', ids)
        .orderBy('g.id')
        .execute()
    },

    create: (domainId, object, now) =>
      write(db, { type: TYPE, name: object.userName }, async (tx) => {
        await requireFreeName(tx, domainId, object.userName)
        const id = newId()
        await tx
          .insertInto('scim_users')
          .values({
            id,
            auth_domain_id: domainId,
            user_id: null,
            stable_id: '',
            created: now,
            modified: now,
            revision: 1,
            ...columnsOf(object),
          })
          .execute()
        await syncPerson(tx, newId, id)
        return scimUser((await byId(tx, domainId, id))[0]!)
      }),

    update: (old, object, now) =>
      write(db, { type: TYPE, name: object.userName }, async (tx) => {
        const { id, authDomainId, personId } = old
        await requireFreeName(tx, authDomainId, object.userName, personId)
        // Another id is another person: rights and sessions of the former are not handed on.
        const isAnother = old.externalId !== object.externalId && (await isByExternalId(tx, authDomainId))
        if (isAnother && personId !== undefined) await removePerson(tx, personId)
        await changed(tx, old, {
          ...columnsOf(object),
          ...(isAnother && { stable_id: '', user_id: null }),
          modified: now,
        })
        await syncPerson(tx, newId, id)
        return scimUser((await byId(tx, authDomainId, id))[0]!)
      }),

    remove: (old) =>
      write(db, { type: TYPE, name: old.userName }, async (tx) => {
        const groups = tx.selectFrom('scim_members').select('group_id').where('user_id', '=', old.id)
        await tx
          .updateTable('scim_groups')
          .set((e) => ({ revision: e('revision', '+', 1) }))
          .where('id', 'in', groups)
          .execute()
        if (old.personId !== undefined) await removePerson(tx, old.personId)
        const rows = tx.deleteFrom('scim_users').where('id', '=', old.id)
        const { numDeletedRows } = await rows.where('revision', '=', old.revision).executeTakeFirstOrThrow()
        if (numDeletedRows === 0n) throw new ChangedError(TYPE)
      }),
  }
}

const counted = keptQuery((db: Db, domainId: Id) =>
  db
    .selectFrom('scim_users')
    .select((e) => e.fn.countAll<number>().as('total'))
    .where('auth_domain_id', '=', domainId),
)
const byId = keptQuery((db: Db, domainId: Id, id: Id) =>
  db.selectFrom('scim_users').selectAll().where('auth_domain_id', '=', domainId).where('id', '=', id),
)
const byName = keptQuery((db: Db, domainId: Id, key: string) =>
  db.selectFrom('scim_users').selectAll().where('auth_domain_id', '=', domainId).where('name_key', '=', key),
)
const byExternalId = keptQuery((db: Db, domainId: Id, externalId: string) =>
  db
    .selectFrom('scim_users')
    .selectAll()
    .where('auth_domain_id', '=', domainId)
    .where('external_id', '=', externalId),
)
const personRow = keptQuery((db: Db, id: Id) => selectUsers(db).where('users.id', '=', id))

async function isByExternalId(tx: Tx, domainId: Id): Promise<boolean> {
  return (await domainOf(tx, domainId))[0]?.scim_identifier === 'external_id'
}

/** @throws LastAdministratorError */
async function removePerson(tx: Tx, id: Id): Promise<void> {
  const [row] = await personRow(tx, id)
  await keepingAdministrators(tx, row, () => tx.deleteFrom('users').where('id', '=', id).execute())
}

/** @throws ChangedError if the user is not what it was */
async function changed(tx: Tx, old: ScimUser, columns: Partial<ScimUserRow>): Promise<void> {
  const rows = tx
    .updateTable('scim_users')
    .set({ ...columns, revision: old.revision + 1 })
    .where('id', '=', old.id)
  const { numUpdatedRows } = await rows.where('revision', '=', old.revision).executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) throw new ChangedError(TYPE)
}

/** @throws DuplicateError if a user that is not of the domain has the name, or one that looks like it */
async function requireFreeName(tx: Tx, domainId: Id, userName: string, own?: Id): Promise<void> {
  const [domain] = await domainOf(tx, domainId)
  const name = domain && personName(userName, domain.domain_name)
  const like = name === undefined ? undefined : await likeRow(tx, name, own)
  const [other] = like ? await personRow(tx, like.id) : []
  const isOwn = other?.auth_domain_id === domainId && other.name_key === nameKey(name ?? '')
  if (other && !isOwn) throw new DuplicateError(TYPE, userName)
}

function columnsOf({ userName, externalId, isActive, more }: NewScimUser) {
  return {
    user_name: userName,
    name_key: nameKey(userName),
    external_id: externalId ?? null,
    is_active: Number(isActive),
    more: JSON.stringify(more),
  }
}

function scimUser(row: ScimUserRow): ScimUser {
  return {
    id: row.id,
    authDomainId: row.auth_domain_id,
    ...(row.user_id !== null && { personId: row.user_id }),
    userName: row.user_name,
    ...(row.external_id !== null && { externalId: row.external_id }),
    isActive: row.is_active !== 0,
    more: JSON.parse(row.more),
    created: row.created,
    modified: row.modified,
    revision: row.revision,
  }
}

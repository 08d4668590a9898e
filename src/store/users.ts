import { sql } from 'kysely'
import { lookKey, nameKey } from '../model/names.ts'
import type { Id, User } from '../model/objects.ts'
import { batchQuery } from './batches.ts'
import { DuplicateError, LastAdministratorError } from './engine/errors.ts'
import { jsonList } from './engine/json.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import { setLinks } from './links.ts'
import type { Db, StoreContext, UserRow } from './migrations/schema.ts'
import { requireProfile } from './profiles.ts'
import {
  cleared,
  flag,
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
import type { UserRepository } from './store.ts'

const TYPE = 'user'
export const USER_FIELDS = {
  user_name: column('name', 'name_key'),
  display_name: column('text', 'display_name'),
  email: column('text', 'email'),
  profile: column('label', 'profile'),
  user_auths: listColumn('label', 'users.user_auths'),
  secondary_auth: listColumn('label', 'users.secondary_auth'),
  ssh_public_keys: listColumn('text', 'users.ssh_public_keys'),
  is_disabled: column('flag', 'is_disabled'),
  is_locked: column('flag', 'is_locked'),
  expiration_date: nullable('time', 'expiration_date'),
  ip_source: listColumn('text', 'users.ip_source'),
  groups: related('name', {
    value: sql.ref('users.id'),
    from: sql`user_group_members as m inner join user_groups as g on g.id = m.group_id`,
    equals: sql.ref('m.user_id'),
    member: sql.ref('g.name_key'),
  }),
  id: column('id', 'users.id'),
}

const lastSignIns = keptQuery((db: Db, id: Id) =>
  db.selectFrom('last_sign_ins').select('time').where('user_id', '=', id),
)
const SIGN_IN_NOTED_MS = 60_000

export function userRepository({ db, newId }: StoreContext): UserRepository {
  const find = async (from: Db, idOrName: string): Promise<User | undefined> => {
    const row = await rowOf(from, idOrName)
    return row && user(row)
  }
  return {
    list: (page) =>
      listed(select(db).where('auth_domain_id', 'is', null), user, USER_FIELDS, ['user_name'], page),

    find: (idOrName) => find(db, idOrName),

    some: async (ids) =>
      (
        await rowsOf(
          db,
          ids.map((id) => [id]),
        )
      ).map(user),

    async lookingLike(name) {
      const row = await likeRow(db, name)
      return row && find(db, row.id)
    },

    async noteLooks() {
      // A name in ASCII looks like itself.
      const rows = await db
        .selectFrom('users')
        .select(['id', 'user_name'])
        .where('look', 'is', null)
        .where(sql<boolean>`octet_length(user_name) <> length(user_name)`)
        .execute()
      const looks = rows.flatMap(({ id, user_name }) => {
        const look = lookOf(user_name)
        return look === null ? [] : [{ id, user_name, look }]
      })
      for (const { id, user_name, look } of looks) {
        const one = db.updateTable('users').set({ look }).where('id', '=', id)
        await one.where('user_name', '=', user_name).execute()
      }
      return looks.length
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.userName }, async (tx) => {
        await requireOwnLook(tx, object.userName)
        await requireProfile(tx, TYPE, object.profile)
        const id = newId()
        await insertRow(tx, 'users', {
          id,
          user_name: object.userName,
          name_key: nameKey(object.userName),
          display_name: object.displayName,
          email: object.email,
          profile: object.profile,
          user_auths: JSON.stringify(object.userAuths),
          secondary_auth: JSON.stringify(object.secondaryAuths ?? []),
          ssh_public_keys: JSON.stringify(object.sshPublicKeys),
          is_disabled: Number(object.isDisabled),
          is_locked: Number(object.isLocked ?? false),
          expiration_date: object.expirationDate ?? null,
          ip_source: JSON.stringify(object.ipSource),
          password_hash: null,
          sealed_password_hash: null,
          secret_revision: 0,
          look: lookOf(object.userName),
          auth_domain_id: null,
          stable_id: '',
        })
        await setGroups(tx, id, object.groupIds)
        return (await find(tx, id))!
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.userName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        if (change.profile !== undefined) await requireProfile(tx, TYPE, change.profile)
        if (change.userName !== undefined) await requireOwnLook(tx, change.userName, id)
        await keepingAnAdministrator(tx, () =>
          setColumns(tx, 'users', id, {
            user_name: change.userName,
            name_key: key(change.userName),
            look: change.userName === undefined ? undefined : lookOf(change.userName),
            display_name: change.displayName,
            email: change.email,
            profile: change.profile,
            user_auths: json(change.userAuths),
            secondary_auth: json(change.secondaryAuths),
            ssh_public_keys: json(change.sshPublicKeys),
            is_disabled: flag(change.isDisabled),
            is_locked: flag(change.isLocked),
            expiration_date: cleared(change, 'expirationDate'),
            ip_source: json(change.ipSource),
          }),
        )
        if (change.groupIds !== undefined) await setGroups(tx, id, change.groupIds)
        return (await find(tx, id))!
      }),

    // Memberships belong to the user and are removed with it.
    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await keepingAnAdministrator(tx, () => tx.deleteFrom('users').where('id', '=', id).execute())
      }),

    async localAt(domainName) {
      const ending = `@${nameKey(domainName)}`
      const row = await db
        .selectFrom('users')
        .select('user_name')
        .where('auth_domain_id', 'is', null)
        .where(
          sql<string>`substr(name_key, length(name_key) - ${ending.length - 1}, ${ending.length})`,
          '=',
          ending,
        )
        .limit(1)
        .executeTakeFirst()
      return row?.user_name
    },

    async noteSignIn(id, now) {
      const [row] = await lastSignIns(db, id)
      // A clock that was set back is followed.
      if (row && row.time <= now && now < row.time + SIGN_IN_NOTED_MS) return
      await db
        .insertInto('last_sign_ins')
        .columns(['user_id', 'time'])
        // The user may have been removed since.
        .expression(
          db
            .selectFrom('users')
            .select(['id', sql<number>`cast(${now} as bigint)`.as('time')])
            .where('id', '=', id),
        )
        .onConflict((conflict) => conflict.column('user_id').doUpdateSet({ time: now }))
        .execute()
    },

    async secretsOf(id) {
      const [row] = await hashOf(db, id)
      return row?.sealed_password_hash ? { passwordHash: row.sealed_password_hash } : {}
    },

    renewPasswordHash: async (id, before, sealed) => {
      await db
        .updateTable('users')
        .set({ sealed_password_hash: sealed })
        .where('id', '=', id)
        .where('sealed_password_hash', '=', before)
        .execute()
    },

    async clearPasswordHashes() {
      const rows = await db
        .selectFrom('users')
        .select(['id', 'password_hash as hash'])
        .where('password_hash', 'is not', null)
        .execute()
      return rows.map(({ id, hash }) => ({ id, hash: hash ?? '' }))
    },

    sealPasswordHash: async (id, clear, sealed) => {
      await db
        .updateTable('users')
        .set({ password_hash: null, sealed_password_hash: sealed })
        .where('id', '=', id)
        .where('password_hash', '=', clear)
        .execute()
    },

    setPasswordHash: (id, sealed) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        await requireIds(tx, 'users', [id], TYPE, 'id')
        await tx
          .updateTable('users')
          .set((e) => ({
            password_hash: null,
            sealed_password_hash: sealed,
            secret_revision: e('secret_revision', '+', 1),
          }))
          .where('id', '=', id)
          .execute()
      }),
  }
}

/** Returns the visual form of a name, or null if it is the key. */
function lookOf(name: string): string | null {
  const look = lookKey(name)
  return look === nameKey(name) ? null : look
}

/** Returns the ids of users whose names look like this one, or are the same, but for one. */
const likeIds = keptQuery((db: Db, look: string, key: string, exceptId: Id) =>
  db
    .selectFrom('users')
    .select('id')
    .where((e) => e.or([e('look', '=', look), e.and([e('name_key', '=', key), e('look', 'is', null)])]))
    .where('id', '<>', exceptId),
)

/** Returns a user whose name looks like this one, or is the same. */
export async function likeRow(db: Db, name: string, exceptId = ''): Promise<{ id: string } | undefined> {
  const look = lookKey(name)
  return (await likeIds(db, look, look, exceptId))[0]
}

/** @throws DuplicateError if another user's name looks like this one */
async function requireOwnLook(tx: Tx, name: string, own?: Id): Promise<void> {
  if (await likeRow(tx, name, own)) throw new DuplicateError(TYPE, name)
}

/** @throws LastAdministratorError if the change would remove the last user with all rights */
async function keepingAnAdministrator(tx: Tx, change: () => Promise<unknown>): Promise<void> {
  const before = await hasAdministrator(tx)
  await change()
  if (before && !(await hasAdministrator(tx))) throw new LastAdministratorError()
}

/** Returns whether a user with all rights can sign in to the API by password, today and later, with no server there. */
async function hasAdministrator(tx: Tx): Promise<boolean> {
  const row = await tx
    .selectFrom('users')
    .select('id')
    .where('profile', '=', 'product_administrator')
    .where('is_disabled', '=', 0)
    .where('is_locked', '=', 0)
    .where('expiration_date', 'is', null)
    .where('user_auths', 'like', '%"local_password"%')
    .where('secondary_auth', '=', '[]')
    .where('sealed_password_hash', 'is not', null)
    .executeTakeFirst()
  return row !== undefined
}

const rowOf = rowFinder(select)

/** Each sign-in by password runs it. */
const hashOf = keptQuery((db: Db, id: Id) =>
  db.selectFrom('users').select('sealed_password_hash').where('id', '=', id),
)

const rowsOf = batchQuery(1, (db, asked) => select(db).innerJoin(asked, 'asked.column1', 'users.id'))

export function select(db: Db) {
  return db
    .selectFrom('users')
    .selectAll('users')
    .select(
      sql<string>`(select ${jsonList(sql`m.group_id`, sql`m.group_id`)} from user_group_members m where m.user_id = users.id)`.as(
        'groups',
      ),
    )
}

async function setGroups(tx: Tx, userId: Id, groupIds: readonly Id[]): Promise<void> {
  await requireIds(tx, 'user_groups', groupIds, TYPE, 'groups')
  const rows = groupIds.map((id) => ({ group_id: id }))
  await setLinks(tx, 'user_group_members', { user_id: userId }, rows)
}

export function user(row: UserRow & { groups: string }): User {
  return {
    id: row.id,
    userName: row.user_name,
    displayName: row.display_name,
    email: row.email,
    profile: row.profile,
    userAuths: list(row.user_auths),
    ...(row.secondary_auth !== '[]' && { secondaryAuths: list<string>(row.secondary_auth) }),
    sshPublicKeys: list(row.ssh_public_keys),
    isDisabled: row.is_disabled !== 0,
    ...(row.is_locked !== 0 && { isLocked: true }),
    ...(row.expiration_date !== null && { expirationDate: row.expiration_date }),
    ipSource: list(row.ip_source),
    groupIds: list(row.groups),
    ...(row.secret_revision > 0 && { secretRevision: row.secret_revision }),
    ...(row.auth_domain_id !== null && { authDomainId: row.auth_domain_id }),
  }
}

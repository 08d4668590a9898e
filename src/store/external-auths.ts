import type { ExternalAuth } from '../model/external-auths.ts'
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ExternalAuthRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { json, key, list, refuseInUse, requireIds, setColumns, type Tx, write } from './query.ts'
import { column } from './searchable.ts'
import type { ExternalAuthRepository } from './store.ts'

const TYPE = 'external authentication'
export const EXTERNAL_AUTH_FIELDS = {
  authentication_name: column('name', 'name_key'),
  description: column('text', 'description'),
  type: column('label', 'type'),
  timeout: column('integer', 'timeout'),
  offline: column('integer', 'offline'),
  id: column('id', 'id'),
} as const

export function externalAuthRepository(context: StoreContext): ExternalAuthRepository {
  const { db } = context
  const named = namedRepository(context, {
    type: TYPE,
    table: 'external_auths',
    fields: EXTERNAL_AUTH_FIELDS,
    standard: 'authentication_name',
    select,
    object: externalAuth,
    nameOf: ({ authenticationName }) => authenticationName,

    insert: async (tx, id, object: Omit<ExternalAuth, 'id'>) => {
      await tx
        .insertInto('external_auths')
        .values({
          id,
          authentication_name: object.authenticationName,
          name_key: nameKey(object.authenticationName),
          description: object.description,
          type: object.type,
          servers: JSON.stringify(object.servers),
          timeout: object.timeoutMs,
          offline: object.offlineS ?? 0,
          options: JSON.stringify(object.options),
          secrets: '[]',
          secret_revision: 0,
        })
        .execute()
    },

    change: async (tx, id, change, old) => {
      if (change.authenticationName !== undefined)
        await renameMethod(tx, old.authenticationName, change.authenticationName)
      await setColumns(tx, 'external_auths', id, {
        authentication_name: change.authenticationName,
        name_key: key(change.authenticationName),
        description: change.description,
        servers: json(change.servers),
        timeout: change.timeoutMs,
        offline: change.offlineS,
        options: json(change.options),
      })
      // Other servers, or ways to them, have accepted no password yet.
      await tx.deleteFrom('offline_proofs').where('external_auth_id', '=', id).execute()
    },

    requireUnused: async (tx, { id, authenticationName }) => {
      await refuseInUse(TYPE, authenticationName, [
        {
          type: 'authentication domain',
          query: tx
            .selectFrom('auth_domain_auths as a')
            .innerJoin('auth_domains as d', 'd.id', 'a.auth_domain_id')
            .select('d.domain_name as name')
            .distinct()
            .where('a.external_auth_id', '=', id)
            .orderBy('name'),
        },
        {
          type: 'user',
          query: tx
            .selectFrom('users')
            .select('user_name as name')
            .where(
              'id',
              'in',
              // PostgreSQL has no empty list.
              ['', ...(await namedBy(tx, authenticationName)).map(({ id }) => id)],
            )
            .orderBy('name_key'),
        },
      ])
    },
  })
  return {
    ...named,

    async profilesOfUsers(id) {
      const auth = await named.find(id)
      const users = auth ? await namedBy(db, auth.authenticationName) : []
      return [...new Set(users.map(({ profile }) => profile))]
    },

    async sealedSecrets(id) {
      return new Map((await secretsOf(db, id)).map(({ name, sealed }) => [name, sealed]))
    },

    setSealedSecrets: (id, secrets) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        await requireIds(tx, 'external_auths', [id], TYPE, 'id')
        for (const [name, sealed] of secrets) {
          await tx
            .deleteFrom('external_auth_secrets')
            .where('external_auth_id', '=', id)
            .where('name', '=', name)
            .execute()
          if (sealed)
            await tx
              .insertInto('external_auth_secrets')
              .values({ external_auth_id: id, name, sealed })
              .execute()
        }
        const names = (await secretsOf(tx, id)).map(({ name }) => name).sort()
        await tx
          .updateTable('external_auths')
          .set((e) => ({ secrets: JSON.stringify(names), secret_revision: e('secret_revision', '+', 1) }))
          .where('id', '=', id)
          .execute()
      }),
  }
}

/** Returns the users that name the method as a first or a second factor. */
async function namedBy(
  from: Db,
  name: string,
): Promise<{ id: Id; profile: string; first: string[]; second: string[] }[]> {
  const rows = await from
    .selectFrom('users')
    .select(['id', 'profile', 'user_auths', 'secondary_auth'])
    .where((e) => e.or([e('user_auths', 'like', `%"${name}"%`), e('secondary_auth', 'like', `%"${name}"%`)]))
    .execute()
  // An underline is any character there.
  return rows
    .map(({ id, profile, user_auths, secondary_auth }) => ({
      id,
      profile,
      first: list<string>(user_auths),
      second: list<string>(secondary_auth),
    }))
    .filter(({ first, second }) => first.includes(name) || second.includes(name))
}

async function renameMethod(tx: Tx, old: string, name: string): Promise<void> {
  const renamed = (names: string[]) => JSON.stringify(names.map((one) => (one === old ? name : one)))
  for (const { id, first, second } of await namedBy(tx, old))
    await setColumns(tx, 'users', id, { user_auths: renamed(first), secondary_auth: renamed(second) })
}

const secretsOf = keptQuery((db: Db, id: Id) =>
  db.selectFrom('external_auth_secrets').select(['name', 'sealed']).where('external_auth_id', '=', id),
)

function select(db: Db) {
  return db.selectFrom('external_auths').selectAll()
}

function externalAuth(row: ExternalAuthRow): ExternalAuth {
  return {
    id: row.id,
    type: row.type,
    authenticationName: row.authentication_name,
    description: row.description,
    servers: list(row.servers),
    timeoutMs: row.timeout,
    ...(row.offline > 0 && { offlineS: row.offline }),
    options: JSON.parse(row.options),
    secretNames: list(row.secrets),
    secretRevision: row.secret_revision,
  } as ExternalAuth
}

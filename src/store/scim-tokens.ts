/** Tokens by which providers provision the persons of one domain. */
import { nameKey } from '../model/names.ts'
import type { Id } from '../model/objects.ts'
import { TooManyError } from './engine/errors.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, ScimTokenRow, StoreContext } from './migrations/schema.ts'
import { byIdOrName, list, listed, unchanged, write } from './query.ts'
import { column, listColumn, nullable } from './searchable.ts'
import type { ScimToken, ScimTokenRepository } from './store.ts'

const TYPE = 'SCIM token'
export const SCIM_TOKEN_FIELDS = {
  token_name: column('name', 'name_key'),
  ip_source: listColumn('text', 'scim_tokens.ip_source'),
  expiration_date: nullable('time', 'expiration_date'),
  created_at: column('time', 'created_at'),
  last_used_at: nullable('time', 'last_used'),
  last_used_from: column('text', 'last_address'),
  id: column('id', 'id'),
}

export function scimTokenRepository({ db, newId }: StoreContext): ScimTokenRepository {
  const find = async (from: Db, domainId: Id, idOrName: string): Promise<ScimToken | undefined> => {
    const { column, value } = byIdOrName(idOrName)
    const rows = select(from).where('auth_domain_id', '=', domainId)
    const row = await rows.where(column, '=', value).executeTakeFirst()
    return row && tokenOf(row)
  }
  return {
    list: (page, domainId) =>
      listed(
        select(db).where('auth_domain_id', '=', domainId),
        tokenOf,
        SCIM_TOKEN_FIELDS,
        ['token_name'],
        page,
      ),

    find: (domainId, idOrName) => find(db, domainId, idOrName),

    findByHash: async (sha256) => {
      const [row] = await byHash(db, sha256)
      return row && tokenOf(row)
    },

    create: (token, sha256, most) =>
      write(db, { type: TYPE, name: token.tokenName }, async (tx) => {
        const there = await select(tx).where('auth_domain_id', '=', token.authDomainId).execute()
        if (there.length >= most) throw new TooManyError(TYPE)
        const id = newId()
        await tx
          .insertInto('scim_tokens')
          .values({
            id,
            auth_domain_id: token.authDomainId,
            sha256,
            created_at: token.createdAt,
            last_used: null,
            last_address: '',
            ...columnsOf(token),
          })
          .execute()
        return (await find(tx, token.authDomainId, id))!
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.tokenName ?? id }, async (tx) => {
        const row = await select(tx).where('id', '=', id).executeTakeFirst()
        // The last use changes beside an administrator's request.
        const used = row && {
          lastAddress: row.last_address,
          ...(row.last_used !== null && { lastUsed: row.last_used }),
        }
        const old = unchanged(row && tokenOf(row), TYPE, id, expected && { ...expected, ...used })
        await tx
          .updateTable('scim_tokens')
          .set(columnsOf({ ...old, ...change }))
          .where('id', '=', id)
          .execute()
        return (await find(tx, old.authDomainId, id))!
      }),

    remove: async (id) => {
      await db.deleteFrom('scim_tokens').where('id', '=', id).execute()
    },

    used: async (id, time, address) => {
      const change = { last_used: time, last_address: address }
      await db.updateTable('scim_tokens').set(change).where('id', '=', id).execute()
    },
  }
}

const byHash = keptQuery((db: Db, sha256: Uint8Array) => select(db).where('sha256', '=', sha256))

function select(db: Db) {
  return db.selectFrom('scim_tokens').selectAll()
}

function columnsOf({
  tokenName,
  ipSource,
  expirationDate,
}: Pick<ScimToken, 'tokenName' | 'ipSource' | 'expirationDate'>) {
  return {
    token_name: tokenName,
    name_key: nameKey(tokenName),
    ip_source: JSON.stringify(ipSource),
    expiration_date: expirationDate ?? null,
  }
}

function tokenOf(row: ScimTokenRow): ScimToken {
  return {
    id: row.id,
    authDomainId: row.auth_domain_id,
    tokenName: row.token_name,
    ipSource: list(row.ip_source),
    ...(row.expiration_date !== null && { expirationDate: row.expiration_date }),
    createdAt: row.created_at,
    ...(row.last_used !== null && { lastUsed: row.last_used }),
    lastAddress: row.last_address,
  }
}

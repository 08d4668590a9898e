import { type RawBuilder, type SqlBool, sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import {
  type Account,
  type CredentialType,
  DEFAULT_CHECKOUT_POLICY,
  type Id,
  type SecretState,
} from '../model/objects.ts'
import { batchQuery } from './batches.ts'
import { withoutIndex } from './engine/here.ts'
import { jsonList } from './engine/json.ts'
import { keptQuery } from './engine/kept-query.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { AccountRow, Db, StoreContext } from './migrations/schema.ts'
import {
  byIdOrName,
  key,
  list,
  listed,
  refuseInUse,
  requireIds,
  setColumns,
  unchanged,
  write,
} from './query.ts'
import { column, nullable, related } from './searchable.ts'
import type { AccountRepository, PlacedAccount, WantedAccount } from './store.ts'

const TYPE = 'account'
export const ACCOUNT_FIELDS = {
  account_name: column('name', 'accounts.name_key'),
  account_login: column('text', 'accounts.account_login'),
  device: related('name', {
    value: sql.ref('accounts.domain_id'),
    from: sql`domains as d inner join devices as v on v.id = d.device_id`,
    equals: sql.ref('d.id'),
    member: sql.ref('v.name_key'),
    sort: sql`(select v.name_key from domains as d inner join devices as v on v.id = d.device_id
      where d.id = accounts.domain_id)`,
    none: sql`accounts.domain_id in (select d.id from domains as d where d.device_id is null)`,
  }),
  domain: related('name', {
    value: sql.ref('accounts.domain_id'),
    from: sql`domains as d`,
    equals: sql.ref('d.id'),
    member: sql.ref('d.name_key'),
    sort: sql`(select d.name_key from domains as d where d.id = accounts.domain_id)`,
  }),
  description: column('text', 'accounts.description'),
  checkout_policy: related('name', {
    value: sql.ref('accounts.checkout_policy_id'),
    from: sql`checkout_policies as p`,
    equals: sql.ref('p.id'),
    member: sql.ref('p.name_key'),
    sort: sql`(select p.name_key from checkout_policies as p where p.id = accounts.checkout_policy_id)`,
  }),
  'credentials.type': related('label', {
    value: sql.ref('accounts.id'),
    from: sql`account_credentials as c`,
    equals: sql.ref('c.account_id'),
    member: sql.ref('c.type'),
  }),
  auto_change_password: column('flag', 'accounts.auto_change'),
  secret_state: column('label', 'accounts.secret_state'),
  last_change: nullable('time', 'accounts.secret_changed'),
  last_check: nullable('time', 'accounts.secret_checked'),
  id: column('id', 'accounts.id'),
}

/** `credentialTypes` is read from the stored credentials; `create` and `update` ignore it. */
export function accountRepository({ db, newId }: StoreContext): AccountRepository {
  const find = async (from: Db, id: string): Promise<Account | undefined> => {
    const [row] = await rowOf(from, id)
    return row && account(row)
  }
  return {
    async list(page, place) {
      let all = select(db)
      if (place && 'domainId' in place) all = all.where('domain_id', '=', place.domainId)
      else if (place) {
        const domains = db.selectFrom('domains').select('id').where('device_id', '=', place.deviceId)
        all = all.where('domain_id', 'in', domains)
      }
      return listed(all, account, ACCOUNT_FIELDS, ['account_name'], page)
    },

    find: (id) => find(db, id),

    async inDomain(domainId, idOrName) {
      const { column, value } = byIdOrName(idOrName)
      const row = await select(db)
        .where('domain_id', '=', domainId)
        .where(sql<SqlBool>`${sql.ref(column)} = ${value}`)
        .executeTakeFirst()
      return row && account(row)
    },

    meant: (wanted, limit) => accountsMeant(db, wanted, limit),

    create: (object) =>
      write(db, { type: TYPE, name: object.accountName }, async (tx) => {
        await requireIds(tx, 'domains', [object.domainId], TYPE, 'domain')
        const policyId = object.checkoutPolicyId ?? DEFAULT_CHECKOUT_POLICY
        await requireIds(tx, 'checkout_policies', [policyId], TYPE, 'checkout_policy')
        const id = newId()
        await insertRow(tx, 'accounts', {
          id,
          account_name: object.accountName,
          name_key: nameKey(object.accountName),
          account_login: object.accountLogin,
          domain_id: object.domainId,
          description: object.description,
          checkout_policy_id: policyId,
          secret_revision: 0,
          auto_change: Number(!(object.isKept ?? false)),
          secret_state: 'ok',
          secret_changed: null,
          secret_checked: null,
          severed_revision: 0,
        })
        return (await find(tx, id))!
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.accountName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        if (change.domainId !== undefined) await requireIds(tx, 'domains', [change.domainId], TYPE, 'domain')
        if (change.checkoutPolicyId !== undefined)
          await requireIds(tx, 'checkout_policies', [change.checkoutPolicyId], TYPE, 'checkout_policy')
        await setColumns(tx, 'accounts', id, {
          account_name: change.accountName,
          name_key: key(change.accountName),
          account_login: change.accountLogin,
          domain_id: change.domainId,
          description: change.description,
          checkout_policy_id: change.checkoutPolicyId,
          auto_change: change.isKept === undefined ? undefined : Number(!change.isKept),
        })
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const found = unchanged(await find(tx, id), TYPE, id, expected)
        const groups = tx
          .selectFrom('target_groups as g')
          .select('g.group_name as name')
          .orderBy('g.name_key')
        await refuseInUse(TYPE, found.accountName, [
          {
            type: 'domain',
            query: tx
              .selectFrom('domains')
              .select('domain_name as name')
              .where('admin_account_id', '=', id)
              .orderBy('name_key'),
          },
          {
            type: 'target group',
            query: groups.where((e) =>
              e.or([
                e(
                  'g.id',
                  'in',
                  e
                    .selectFrom('target_group_sessions')
                    .select('target_group_id')
                    .where('account_id', '=', id),
                ),
                e(
                  'g.id',
                  'in',
                  e
                    .selectFrom('target_group_retrievals')
                    .select('target_group_id')
                    .where('account_id', '=', id),
                ),
              ]),
            ),
          },
        ])
        await tx.deleteFrom('accounts').where('id', '=', id).execute()
      }),

    async severedRevisions(ids) {
      const rows = await severed(
        db,
        ids.map((id) => [id]),
      )
      return new Map(rows.map((row) => [row.id, row.severed_revision]))
    },

    async sealedCredentials(id) {
      return credentialsOf(db, id)
    },

    setSealedCredentials: (id, credentials, set) =>
      write(db, { type: 'credential', name: credentials.map((c) => c.type).join(', ') }, async (tx) => {
        await requireIds(tx, 'accounts', [id], TYPE, 'id')
        await tx.deleteFrom('account_credentials').where('account_id', '=', id).execute()
        await tx
          .updateTable('accounts')
          .set((e) => ({
            secret_revision: e('secret_revision', '+', 1),
            ...(set && { secret_changed: set.time, secret_checked: null, secret_state: 'ok' }),
            ...(set?.severs && { severed_revision: e('secret_revision', '+', 1) }),
          }))
          .where('id', '=', id)
          .execute()
        for (const [position, { type, sealed }] of credentials.entries()) {
          await tx
            .insertInto('account_credentials')
            .values({ account_id: id, position, type, sealed })
            .execute()
        }
      }),
  }
}

const severed = batchQuery(1, (db, asked) =>
  db
    .selectFrom(asked)
    .innerJoin('accounts as a', 'a.id', 'asked.column1')
    .select(['a.id', 'a.severed_revision']),
)

const rowOf = keptQuery((db: Db, id: Id) => select(db).where('id', '=', id))

const credentialsOf = keptQuery((db: Db, id: Id) =>
  db
    .selectFrom('account_credentials')
    .select(['type', 'sealed'])
    .where('account_id', '=', id)
    .orderBy('position'),
)

function select(db: Db) {
  return db
    .selectFrom('accounts')
    .selectAll('accounts')
    .select(
      sql<string>`(select ${jsonList(sql`c.type`, sql`c.position`)} from account_credentials c where c.account_id = accounts.id)`.as(
        'types',
      ),
    )
}

async function accountsMeant(
  db: Db,
  { account: ref, domainName, device, id, retrievableBy }: WantedAccount,
  limit: number,
): Promise<PlacedAccount[]> {
  const named = byIdOrName(ref)
  let query = select(db)
    .innerJoin('domains as d', 'd.id', 'accounts.domain_id')
    .leftJoin('devices as v', 'v.id', 'd.device_id')
    .select(['d.domain_name', 'd.description as domain_description', 'd.device_id'])
    .select(['v.device_name', 'v.host', 'v.description as device_description'])
  // Most domains are called local, and half of the devices may have a root.
  const name = sql.ref(`accounts.${named.column}`)
  query = query.where(sql<SqlBool>`${device === undefined ? name : withoutIndex(name)} = ${named.value}`)
  if (domainName !== undefined)
    query = query.where(sql<SqlBool>`${withoutIndex(sql`d.name_key`)} = ${nameKey(domainName)}`)
  if (device !== undefined) {
    const { column, value } = byIdOrName(device)
    query = query.where(`v.${column}`, '=', value)
  }
  if (id !== undefined) query = query.where('accounts.id', '=', id)
  if (retrievableBy !== undefined) query = query.where(isRetrievableBy(retrievableBy))
  const rows = await query.orderBy('accounts.id').limit(limit).execute()
  return rows.map((row) => ({
    account: account(row),
    domain: {
      id: row.domain_id,
      domainName: row.domain_name,
      description: row.domain_description,
      ...(row.device_id !== null && { deviceId: row.device_id }),
    },
    device:
      row.device_id === null
        ? undefined
        : {
            id: row.device_id,
            deviceName: row.device_name ?? '',
            host: row.host ?? '',
            description: row.device_description ?? '',
          },
  }))
}

function isRetrievableBy(userId: Id): RawBuilder<SqlBool> {
  const granted = sql`user_group_members as m inner join authorizations as a
    on a.user_group_id = m.group_id and a.authorize_password_retrieval = 1 and m.user_id = ${userId}`
  return sql`(exists (select 1 from ${granted} inner join target_group_retrievals as r
      on r.target_group_id = a.target_group_id and r.account_id = accounts.id)
    or exists (select 1 from ${granted} inner join target_group_sessions as t
      on t.target_group_id = a.target_group_id and t.account_id = accounts.id))`
}

function account(row: AccountRow & { types: string }): Account {
  return {
    id: row.id,
    accountName: row.account_name,
    accountLogin: row.account_login,
    domainId: row.domain_id,
    description: row.description,
    credentialTypes: list<CredentialType>(row.types),
    checkoutPolicyId: row.checkout_policy_id ?? DEFAULT_CHECKOUT_POLICY,
    ...(row.secret_revision > 0 && { secretRevision: row.secret_revision }),
    ...(row.auto_change === 0 && { isKept: true }),
    ...(row.secret_state !== 'ok' && { secretState: row.secret_state as Exclude<SecretState, 'ok'> }),
    ...(row.secret_changed !== null && { secretChanged: row.secret_changed }),
    ...(row.secret_checked !== null && { secretChecked: row.secret_checked }),
    ...(row.severed_revision > 0 && { severedRevision: row.severed_revision }),
  }
}

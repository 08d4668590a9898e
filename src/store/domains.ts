import { sql } from 'kysely'
import { formatDomainKerberos, parseDomainKerberos } from '../model/domain-kerberos.ts'
import { looksLikeId, nameKey } from '../model/names.ts'
import type { Domain, DomainChange, Id } from '../model/objects.ts'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../model/password-change.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, DomainRow, StoreContext } from './migrations/schema.ts'
import {
  cleared,
  key,
  listed,
  refuseInUse,
  requireIds,
  setColumns,
  type Tx,
  unchanged,
  write,
} from './query.ts'
import { column, related } from './searchable.ts'
import type { DomainRepository } from './store.ts'

const TYPE = 'domain'
export const DOMAIN_FIELDS = {
  domain_name: column('name', 'name_key'),
  description: column('text', 'description'),
  enable_password_change: column('flag', 'change_enabled'),
  password_change_plugin: column('label', 'change_plugin'),
  password_change_policy: related('name', {
    value: sql.ref('domains.change_policy_id'),
    from: sql`password_change_policies as p`,
    equals: sql.ref('p.id'),
    member: sql.ref('p.name_key'),
    sort: sql`(select p.name_key from password_change_policies as p where p.id = domains.change_policy_id)`,
    none: sql`domains.change_policy_id is null`,
  }),
  id: column('id', 'id'),
}

/** `find` finds global domains by name; local ones only by their device or their id. */
export function domainRepository({ db, newId }: StoreContext): DomainRepository {
  const find = async (from: Db, idOrName: string): Promise<Domain | undefined> => {
    const query = select(from)
    const row = await (looksLikeId(idOrName)
      ? query.where('id', '=', idOrName.toUpperCase())
      : query.where('name_key', '=', nameKey(idOrName)).where('device_id', 'is', null)
    ).executeTakeFirst()
    return row && domain(row)
  }
  return {
    async list(page, deviceId) {
      const all = select(db)
      const own =
        deviceId === undefined ? all.where('device_id', 'is', null) : all.where('device_id', '=', deviceId)
      return listed(own, domain, DOMAIN_FIELDS, ['domain_name'], page)
    },

    find: (idOrName) => find(db, idOrName),

    async ofDevice(deviceId) {
      const rows = await select(db).where('device_id', '=', deviceId).orderBy('name_key').execute()
      return rows.map(domain)
    },

    async pluginsOfPolicy(policyId) {
      const rows = await db
        .selectFrom('domains')
        .select('change_plugin')
        .distinct()
        .where('change_policy_id', '=', policyId)
        .orderBy('change_plugin')
        .execute()
      return rows.map(({ change_plugin }) => change_plugin)
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.domainName }, async (tx) => {
        if (object.deviceId !== undefined) await requireIds(tx, 'devices', [object.deviceId], TYPE, 'device')
        const id = newId()
        await tx
          .insertInto('domains')
          .values({
            id,
            domain_name: object.domainName,
            name_key: nameKey(object.domainName),
            description: object.description,
            device_id: object.deviceId ?? null,
            ca_public_key: null,
            secret_revision: 0,
            kerberos: formatDomainKerberos(object.kerberos),
            ...(await changeColumns(tx, object.change)),
          })
          .execute()
        return { ...object, id }
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.domainName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        if (change.deviceId !== undefined) await requireIds(tx, 'devices', [change.deviceId], TYPE, 'device')
        await setColumns(tx, 'domains', id, {
          domain_name: change.domainName,
          name_key: key(change.domainName),
          description: change.description,
          device_id: cleared(change, 'deviceId'),
          ...('kerberos' in change && { kerberos: formatDomainKerberos(change.kerberos) }),
          ...('change' in change && (await changeColumns(tx, change.change))),
        })
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const found = unchanged(await find(tx, id), TYPE, id, expected)
        await refuseInUse(TYPE, found.domainName, [
          {
            type: 'account',
            query: tx
              .selectFrom('accounts')
              .select('account_name as name')
              .where('domain_id', '=', id)
              .orderBy('name_key'),
          },
        ])
        await tx.deleteFrom('domains').where('id', '=', id).execute()
      }),

    async sealedAuthority(id) {
      return (await authorityOf(db, id))[0]?.sealed
    },

    setSealedAuthority: (id, authority) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        await requireIds(tx, 'domains', [id], TYPE, 'id')
        await tx.deleteFrom('domain_authorities').where('domain_id', '=', id).execute()
        await tx
          .updateTable('domains')
          .set((e) => ({
            ca_public_key: authority?.publicKey ?? null,
            secret_revision: e('secret_revision', '+', 1),
          }))
          .where('id', '=', id)
          .execute()
        if (authority)
          await tx
            .insertInto('domain_authorities')
            .values({ domain_id: id, sealed: authority.sealed })
            .execute()
      }),
  }
}

const authorityOf = keptQuery((db: Db, id: Id) =>
  db.selectFrom('domain_authorities').select('sealed').where('domain_id', '=', id),
)

/** Columns of the domain's changes of secrets, of which it may have none. */
async function changeColumns(tx: Db, change: DomainChange | undefined) {
  if (change) {
    const { policyId, adminAccountId } = change
    await requireIds(tx as Tx, 'password_change_policies', [policyId], TYPE, 'password_change_policy')
    if (adminAccountId !== undefined)
      await requireIds(tx as Tx, 'accounts', [adminAccountId], TYPE, 'admin_account')
  }
  return {
    change_plugin: change?.plugin ?? '',
    change_enabled: Number(change?.isEnabled ?? false),
    change_policy_id: change?.policyId ?? null,
    change_parameters: JSON.stringify(change?.parameters ?? {}),
    admin_account_id: change?.adminAccountId ?? null,
  }
}

function select(db: Db) {
  return db.selectFrom('domains').selectAll()
}

function domain(row: DomainRow): Domain {
  return {
    id: row.id,
    domainName: row.domain_name,
    description: row.description,
    ...(row.device_id !== null && { deviceId: row.device_id }),
    ...(row.ca_public_key !== null && { caPublicKey: row.ca_public_key }),
    ...(row.kerberos !== '' && { kerberos: parseDomainKerberos(row.kerberos) }),
    ...(row.secret_revision > 0 && { secretRevision: row.secret_revision }),
    ...(row.change_plugin !== '' && {
      change: {
        isEnabled: row.change_enabled !== 0,
        policyId: row.change_policy_id ?? DEFAULT_PASSWORD_CHANGE_POLICY,
        plugin: row.change_plugin,
        parameters: JSON.parse(row.change_parameters) as DomainChange['parameters'],
        ...(row.admin_account_id !== null && { adminAccountId: row.admin_account_id }),
      },
    }),
  }
}

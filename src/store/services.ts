import { sql } from 'kysely'
import { nameKey } from '../model/names.ts'
import { FACTORY_CONNECTION_POLICIES, type HostKeyPolicy, type Service } from '../model/objects.ts'
import type { Protocol, Right } from '../model/rights.ts'
import type { Db, ServiceRow, StoreContext } from './migrations/schema.ts'
import {
  cleared,
  json,
  key,
  list,
  listed,
  refuseInUse,
  requireIds,
  setColumns,
  unchanged,
  write,
} from './query.ts'
import { column, listColumn, related } from './searchable.ts'
import type { ServiceRepository } from './store.ts'

const TYPE = 'service'
export const SERVICE_FIELDS = {
  service_name: column('name', 'name_key'),
  device: related('name', {
    value: sql.ref('services.device_id'),
    from: sql`devices as v`,
    equals: sql.ref('v.id'),
    member: sql.ref('v.name_key'),
    sort: sql`(select v.name_key from devices as v where v.id = services.device_id)`,
  }),
  protocol: column('label', 'protocol'),
  port: column('integer', 'port'),
  subprotocols: listColumn('label', 'services.subprotocols'),
  host_key_policy: column('label', 'host_key_policy'),
  connection_policy: related('name', {
    value: sql.ref('services.connection_policy_id'),
    from: sql`connection_policies as p`,
    equals: sql.ref('p.id'),
    member: sql.ref('p.name_key'),
    sort: sql`(select p.name_key from connection_policies as p where p.id = services.connection_policy_id)`,
  }),
  id: column('id', 'services.id'),
}

export function serviceRepository({ db, newId }: StoreContext): ServiceRepository {
  const find = async (from: Db, id: string): Promise<Service | undefined> => {
    const row = await select(from).where('id', '=', id).executeTakeFirst()
    return row && service(row)
  }
  return {
    async list(page, deviceId) {
      let all = select(db)
      if (deviceId !== undefined) all = all.where('device_id', '=', deviceId)
      return listed(all, service, SERVICE_FIELDS, ['service_name'], page)
    },

    find: (id) => find(db, id),

    async ofDevice(deviceId) {
      const rows = await select(db).where('device_id', '=', deviceId).orderBy('name_key').execute()
      return rows.map(service)
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.serviceName }, async (tx) => {
        await requireIds(tx, 'devices', [object.deviceId], TYPE, 'device')
        const policyId = object.connectionPolicyId ?? FACTORY_CONNECTION_POLICIES[object.protocol]
        await requireIds(tx, 'connection_policies', [policyId], TYPE, 'connection_policy')
        const id = newId()
        await tx
          .insertInto('services')
          .values({
            id,
            device_id: object.deviceId,
            service_name: object.serviceName,
            name_key: nameKey(object.serviceName),
            protocol: object.protocol,
            port: object.port,
            subprotocols: JSON.stringify(object.subprotocols),
            host_key_policy: object.hostKeyPolicy ?? '',
            connection_policy_id: policyId,
            kerberos_host: object.kerberosHost ?? '',
          })
          .execute()
        return (await find(tx, id))!
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.serviceName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        if (change.deviceId !== undefined) await requireIds(tx, 'devices', [change.deviceId], TYPE, 'device')
        if (change.connectionPolicyId !== undefined)
          await requireIds(tx, 'connection_policies', [change.connectionPolicyId], TYPE, 'connection_policy')
        await setColumns(tx, 'services', id, {
          device_id: change.deviceId,
          service_name: change.serviceName,
          name_key: key(change.serviceName),
          protocol: change.protocol,
          port: change.port,
          subprotocols: json(change.subprotocols),
          host_key_policy: cleared(change, 'hostKeyPolicy') === null ? '' : change.hostKeyPolicy,
          connection_policy_id: change.connectionPolicyId,
          kerberos_host: cleared(change, 'kerberosHost') === null ? '' : change.kerberosHost,
        })
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const found = unchanged(await find(tx, id), TYPE, id, expected)
        await refuseInUse(TYPE, found.serviceName, [
          {
            type: 'target group',
            query: tx
              .selectFrom('target_groups as g')
              .select('g.group_name as name')
              .where('g.id', 'in', (e) =>
                e
                  .selectFrom('target_group_sessions as t')
                  .select('t.target_group_id')
                  .where('t.service_id', '=', id)
                  .union(
                    e
                      .selectFrom('target_group_logins as l')
                      .select('l.target_group_id')
                      .where('l.service_id', '=', id),
                  ),
              )
              .orderBy('g.group_name'),
          },
        ])
        await tx.deleteFrom('services').where('id', '=', id).execute()
      }),
  }
}

function select(db: Db) {
  return db.selectFrom('services').selectAll()
}

function service(row: ServiceRow): Service {
  return {
    id: row.id,
    deviceId: row.device_id,
    serviceName: row.service_name,
    protocol: row.protocol as Protocol,
    port: row.port,
    subprotocols: list<Right>(row.subprotocols),
    ...(row.host_key_policy !== '' && { hostKeyPolicy: row.host_key_policy as HostKeyPolicy }),
    ...(row.kerberos_host !== '' && { kerberosHost: row.kerberos_host }),
    connectionPolicyId: row.connection_policy_id ?? FACTORY_CONNECTION_POLICIES[row.protocol as Protocol],
  }
}

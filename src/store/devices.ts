import { nameKey } from '../model/names.ts'
import type { Device } from '../model/objects.ts'
import type { Db, DeviceRow, StoreContext } from './migrations/schema.ts'
import { key, listed, refuseInUse, rowOf, setColumns, unchanged, write } from './query.ts'
import { column } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'device'
export const DEVICE_FIELDS = {
  device_name: column('name', 'name_key'),
  host: column('text', 'host'),
  description: column('text', 'description'),
  id: column('id', 'id'),
}

export function deviceRepository({ db, newId }: StoreContext): Repository<Device> {
  const find = async (from: Db, idOrName: string): Promise<Device | undefined> => {
    const row = await rowOf(select(from), idOrName)
    return row && device(row)
  }
  return {
    list: (page) => listed(select(db), device, DEVICE_FIELDS, ['device_name'], page),

    find: (idOrName) => find(db, idOrName),

    create: (object) =>
      write(db, { type: TYPE, name: object.deviceName }, async (tx) => {
        const id = newId()
        await tx
          .insertInto('devices')
          .values({
            id,
            device_name: object.deviceName,
            name_key: nameKey(object.deviceName),
            host: object.host,
            description: object.description,
          })
          .execute()
        return { ...object, id }
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.deviceName ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await setColumns(tx, 'devices', id, {
          device_name: change.deviceName,
          name_key: key(change.deviceName),
          host: change.host,
          description: change.description,
        })
        return (await find(tx, id))!
      }),

    // Services, host keys and empty local domains belong to the device and are removed with it. Accounts hold
    // secrets, so they must be removed by name first.
    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        const found = unchanged(await find(tx, id), TYPE, id, expected)
        await refuseInUse(TYPE, found.deviceName, [
          {
            type: 'target group',
            query: tx
              .selectFrom('target_groups as g')
              .select('g.group_name as name')
              .where('g.id', 'in', (e) =>
                e
                  .selectFrom('target_group_sessions as t')
                  .innerJoin('services as s', 's.id', 't.service_id')
                  .select('t.target_group_id')
                  .where('s.device_id', '=', id)
                  .union(
                    e
                      .selectFrom('target_group_logins as l')
                      .innerJoin('services as s', 's.id', 'l.service_id')
                      .select('l.target_group_id')
                      .where('s.device_id', '=', id),
                  ),
              )
              .orderBy('g.group_name'),
          },
          {
            type: 'account',
            query: tx
              .selectFrom('accounts as a')
              .innerJoin('domains as d', 'd.id', 'a.domain_id')
              .select('a.account_name as name')
              .where('d.device_id', '=', id)
              .orderBy('a.name_key'),
          },
        ])
        await tx.deleteFrom('devices').where('id', '=', id).execute()
      }),
  }
}

function select(db: Db) {
  return db.selectFrom('devices').selectAll()
}

function device(row: DeviceRow): Device {
  return { id: row.id, deviceName: row.device_name, host: row.host, description: row.description }
}

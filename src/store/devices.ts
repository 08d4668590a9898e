import { nameKey } from '../model/names.ts'
import type { Device } from '../model/objects.ts'
import { insertRow } from './engine/kept-rows.ts'
import type { Db, DeviceRow, StoreContext } from './migrations/schema.ts'
import { namedRepository } from './named.ts'
import { key, refuseInUse, setColumns } from './query.ts'
import { column } from './searchable.ts'
import type { Repository } from './store.ts'

const TYPE = 'device'
export const DEVICE_FIELDS = {
  device_name: column('name', 'name_key'),
  host: column('text', 'host'),
  description: column('text', 'description'),
  id: column('id', 'id'),
}

export function deviceRepository(context: StoreContext): Repository<Device> {
  return namedRepository(context, {
    type: TYPE,
    table: 'devices',
    fields: DEVICE_FIELDS,
    standard: 'device_name',
    select,
    object: device,
    nameOf: ({ deviceName }) => deviceName,

    insert: async (tx, id, object: Omit<Device, 'id'>) => {
      await insertRow(tx, 'devices', {
        id,
        device_name: object.deviceName,
        name_key: nameKey(object.deviceName),
        host: object.host,
        description: object.description,
      })
    },

    change: async (tx, id, change) => {
      await setColumns(tx, 'devices', id, {
        device_name: change.deviceName,
        name_key: key(change.deviceName),
        host: change.host,
        description: change.description,
      })
    },

    // Services, host keys and empty local domains belong to the device and are removed with it. Accounts hold
    // secrets, so they must be removed by name first.
    requireUnused: async (tx, { id, deviceName }) => {
      await refuseInUse(TYPE, deviceName, [
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
    },
  })
}

function select(db: Db) {
  return db.selectFrom('devices').selectAll()
}

function device(row: DeviceRow): Device {
  return { id: row.id, deviceName: row.device_name, host: row.host, description: row.description }
}

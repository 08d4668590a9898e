import type { HostKey } from '../model/objects.ts'
import { countOf, named, paged, requireIds, write } from './query.ts'
import type { Db, HostKeyRow, StoreContext } from './schema.ts'
import type { HostKeyRepository } from './store.ts'

const TYPE = 'host key'
const SORT = {
  first_seen: 'first_seen',
  device: 'device_id',
  service: 'service_id',
  key_type: 'key_type',
  fingerprint: 'fingerprint',
  state: 'state',
  id: 'id',
}

export function hostKeyRepository({ db, newId }: StoreContext): HostKeyRepository {
  const find = async (from: Db, id: string): Promise<HostKey | undefined> => {
    const row = await from.selectFrom('host_keys').selectAll().where('id', '=', id).executeTakeFirst()
    return row && hostKey(row)
  }
  return {
    async list(page) {
      const rows = await paged(db.selectFrom('host_keys').selectAll(), page, SORT, 'id').execute()
      return { items: rows.map(hostKey), total: await countOf(db, 'host_keys') }
    },

    find: (id) => find(db, id),

    async ofService(serviceId) {
      const rows = await db
        .selectFrom('host_keys')
        .selectAll()
        .where('service_id', '=', serviceId)
        .orderBy('first_seen')
        .execute()
      return rows.map(hostKey)
    },

    create: (object) =>
      write(db, { type: TYPE, name: object.fingerprint }, async (tx) => {
        await requireIds(tx, 'devices', [object.deviceId], TYPE, 'device')
        await requireIds(tx, 'services', [object.serviceId], TYPE, 'service')
        const id = newId()
        await tx
          .insertInto('host_keys')
          .values({
            id,
            device_id: object.deviceId,
            service_id: object.serviceId,
            key_type: object.keyType,
            fingerprint: object.fingerprint,
            key: object.key,
            first_seen: object.firstSeen,
            state: object.state,
          })
          .execute()
        return { ...object, id }
      }),

    update: (id, change) =>
      write(db, { type: TYPE, name: change.fingerprint ?? id }, async (tx) => {
        await requireIds(tx, 'host_keys', [id], TYPE, 'id')
        const columns = named({
          device_id: change.deviceId,
          service_id: change.serviceId,
          key_type: change.keyType,
          fingerprint: change.fingerprint,
          key: change.key,
          first_seen: change.firstSeen,
          state: change.state,
        })
        if (Object.keys(columns).length > 0)
          await tx.updateTable('host_keys').set(columns).where('id', '=', id).execute()
        return (await find(tx, id))!
      }),

    remove: (id) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        await requireIds(tx, 'host_keys', [id], TYPE, 'id')
        await tx.deleteFrom('host_keys').where('id', '=', id).execute()
      }),
  }
}

function hostKey(row: HostKeyRow): HostKey {
  return {
    id: row.id,
    deviceId: row.device_id,
    serviceId: row.service_id,
    keyType: row.key_type,
    fingerprint: row.fingerprint,
    key: row.key,
    firstSeen: row.first_seen,
    state: row.state as HostKey['state'],
  }
}

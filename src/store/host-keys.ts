import { sql } from 'kysely'
import type { HostKey, Id } from '../model/objects.ts'
import { keptQuery } from './engine/kept-query.ts'
import type { Db, HostKeyRow, StoreContext } from './migrations/schema.ts'
import { listed, requireIds, setColumns, unchanged, write } from './query.ts'
import { column, related } from './searchable.ts'
import type { HostKeyRepository } from './store.ts'

const TYPE = 'host key'
export const HOST_KEY_FIELDS = {
  first_seen: column('time', 'first_seen'),
  device: related('name', {
    value: sql.ref('host_keys.device_id'),
    from: sql`devices as v`,
    equals: sql.ref('v.id'),
    member: sql.ref('v.name_key'),
    sort: sql`(select v.name_key from devices as v where v.id = host_keys.device_id)`,
  }),
  service: related('name', {
    value: sql.ref('host_keys.service_id'),
    from: sql`services as s`,
    equals: sql.ref('s.id'),
    member: sql.ref('s.name_key'),
    sort: sql`(select s.name_key from services as s where s.id = host_keys.service_id)`,
  }),
  key_type: column('label', 'key_type'),
  fingerprint: column('text', 'fingerprint'),
  key: column('text', 'key'),
  state: column('label', 'state'),
  id: column('id', 'host_keys.id'),
}

export function hostKeyRepository({ db, newId }: StoreContext): HostKeyRepository {
  const find = async (from: Db, id: string): Promise<HostKey | undefined> => {
    const row = await select(from).where('id', '=', id).executeTakeFirst()
    return row && hostKey(row)
  }
  return {
    list: (page) => listed(select(db), hostKey, HOST_KEY_FIELDS, ['first_seen'], page),

    find: (id) => find(db, id),

    async ofService(serviceId) {
      return (await ofService(db, serviceId)).map(hostKey)
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

    pinFirst: (object) =>
      write(db, { type: TYPE, name: object.fingerprint }, async (tx) => {
        const known = await ofService(tx, object.serviceId)
        if (known.some(({ state }) => state === 'accepted')) return undefined
        return await hostKeyRepository({ db: tx, newId }).create({ ...object, state: 'accepted' })
      }),

    update: (id, change, expected) =>
      write(db, { type: TYPE, name: change.fingerprint ?? id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await setColumns(tx, 'host_keys', id, {
          device_id: change.deviceId,
          service_id: change.serviceId,
          key_type: change.keyType,
          fingerprint: change.fingerprint,
          key: change.key,
          first_seen: change.firstSeen,
          state: change.state,
        })
        return (await find(tx, id))!
      }),

    remove: (id, expected) =>
      write(db, { type: TYPE, name: id }, async (tx) => {
        unchanged(await find(tx, id), TYPE, id, expected)
        await tx.deleteFrom('host_keys').where('id', '=', id).execute()
      }),
  }
}

const ofService = keptQuery((db: Db, id: Id) => select(db).where('service_id', '=', id).orderBy('first_seen'))

function select(db: Db) {
  return db.selectFrom('host_keys').selectAll()
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

/**
 * Writes that share a commit: each succeeds or fails alone, and none is reported before it is on the disk.
 */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openStore } from '../../../src/store/open.ts'
import { newUser } from '../fixture.ts'
import { type TemporaryStore, temporaryStore } from '../temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const device = (deviceName: string) => ({ deviceName, host: 'h', description: '' })

it('of those at once, one that fails takes nothing with it, and leaves nothing behind', async () => {
  const { store } = temp
  const group = await store.userGroups.create({ groupName: 'g', description: '', userIds: [] })
  const results = await Promise.allSettled([
    store.devices.create(device('a')),
    store.devices.create(device('A')),
    // Fails after its first statement: the user is inserted, the group does not exist.
    store.users.create(newUser('half', { groupIds: [group.id, '00000000000000000000000000'] })),
    store.devices.create(device('b')),
    store.devices.create(device('b')),
  ])
  expect(results.map((one) => (one.status === 'fulfilled' ? 'made' : one.reason.name))).toEqual([
    'made',
    'DuplicateError',
    'MissingReferenceError',
    'made',
    'DuplicateError',
  ])
  expect((await store.devices.list()).items.map(({ deviceName }) => deviceName)).toEqual(['a', 'b'])
  expect(await store.users.find('half')).toBeUndefined()
})

it('are on the disk when they are answered, in the order of their asking', async () => {
  const { store, path } = temp
  const reader = new DatabaseSync(path, { readOnly: true })
  const count = reader.prepare('select count(*) as n from devices where device_name = ?')
  const order: string[] = []
  const names = Array.from({ length: 100 }, (_, n) => `d${n}`)
  await Promise.all(
    names.map(async (name) => {
      await store.devices.create(device(name))
      expect(count.get(name)).toEqual({ n: 1 })
      order.push(name)
    }),
  )
  expect(order).toEqual(names)
  reader.close()
})

it('wait for fewer commits than there are of them', async () => {
  const { store, path } = temp
  const watcher = new DatabaseSync(path, { readOnly: true })
  // Changes with every commit of another connection (sqlite.org/pragma.html#pragma_data_version).
  const version = watcher.prepare('pragma data_version')
  const seen = new Set<unknown>()
  const before = version.get()?.['data_version']
  await Promise.all(
    Array.from({ length: 60 }, async (_, n) => {
      await store.devices.create(device(`d${n}`))
      seen.add(version.get()?.['data_version'])
    }),
  )
  expect(seen.has(before)).toBe(false)
  expect(seen.size).toBeLessThan(10)
  watcher.close()
})

it('all fail when the database is gone, and the queue goes on', async () => {
  const { store, path } = temp
  await store.devices.list()
  await store.close()
  const results = await Promise.allSettled([
    store.devices.create(device('a')),
    store.devices.create(device('b')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(store.devices.create(device('c'))).rejects.toThrow()
  temp.store = await openStore({ path })
  expect((await temp.store.devices.list()).total).toBe(0)
})

it('do not wait for one that takes its time', async () => {
  const { store } = temp
  const done: string[] = []
  const long = store.transaction(async (within) => {
    await within.devices.create(device('long'))
    await new Promise((resolve) => setTimeout(resolve, 100))
    done.push('long')
  })
  const before = store.devices.create(device('other')).then(() => done.push('other'))
  await Promise.all([long, before])
  expect(done).toEqual(['long', 'other'])
  expect((await store.devices.list()).total).toBe(2)
})

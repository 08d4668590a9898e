/**
 * Writes that share a commit: each succeeds or fails alone, and none is reported before it is on the disk.
 */
import { afterEach, beforeEach, expect, it } from 'vitest'
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

it('all fail when the database is gone, and the queue goes on', async () => {
  const { store } = temp
  await store.devices.list()
  await store.close()
  const results = await Promise.allSettled([
    store.devices.create(device('a')),
    store.devices.create(device('b')),
  ])
  expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  await expect(store.devices.create(device('c'))).rejects.toThrow()
  temp.store = await temp.open()
  expect((await temp.store.devices.list()).total).toBe(0)
})

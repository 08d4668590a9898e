/** Reading as of one moment, beside others who write. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import { newUser } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temporary: TemporaryStore
beforeEach(async () => {
  temporary = await temporaryStore()
})
afterEach(() => temporary.remove())

it('sees nothing of what is written meanwhile, and all of it afterwards', async () => {
  const { store } = temporary
  const other = await temporary.open()
  await store.users.create(newUser('a'))
  const seen = await store.snapshot(async (within) => {
    expect(await within.users.find('a')).toBeDefined()
    await other.users.create(newUser('b'))
    return await within.users.find('b')
  })
  expect(seen).toBeUndefined()
  expect(await store.users.find('b')).toBeDefined()
  await other.close()
})

it('ends with its error, and the store goes on', async () => {
  const { store } = temporary
  const failed = store.snapshot(async (within) => {
    await within.users.find('a')
    throw new Error('enough')
  })
  await expect(failed).rejects.toThrow('enough')
  await store.users.create(newUser('a'))
})

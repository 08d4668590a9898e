/** Searches and pages of a large collection that read many rows. */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { SearchError } from '../../src/search/grammar.ts'
import { parse } from '../../src/search/parser.ts'
import { MAX_LOOKED_AT } from '../../src/store/engine/patterns.ts'
import { ReadingThread } from '../../src/store/engine/reading-thread.ts'
import { fillToSize } from './at-size.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await temp.remove()
})

const SESSIONS = 25_000
const searched = (q: string) => ({ search: { expression: parse(q), variables: {} } })
const page = (q: string) => ({ limit: 20, offset: 5, ...searched(q) })

it('are read in the thread of long lists, and find the same', async () => {
  const { store, path } = temp
  fillToSize(path, { devices: 1, targets: 1, sessions: SESSIONS })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  // An index serves it.
  expect((await store.sessions.list({}, page('user=ops7'))).total).toBe(SESSIONS / 1000)
  expect(rows).not.toHaveBeenCalled()
  const { items, total } = await store.sessions.list({}, page('reason="" && account~svc12*'))
  // svc12, svc120 to svc129, svc1200 to svc1299, each five times.
  expect(total).toBe(555)
  expect(items).toHaveLength(20)
  expect(items.every(({ account }) => account.startsWith('svc12'))).toBe(true)
  expect(items.map(({ begin }) => begin)).toEqual(items.map(({ begin }) => begin).toSorted((a, b) => b - a))
  // The count, and the page.
  expect(rows).toHaveBeenCalledTimes(2)
})

it.each([
  ['an index that most rows have', { limit: 20, offset: 0, ...searched('result=success') }],
  [
    'an index and a field that few of its rows have',
    { limit: 20, offset: 0, ...searched('result=success && reason=x') },
  ],
  [
    'an index for each term of an `or`',
    { limit: 20, offset: 0, ...searched('(result=success && reason=x) || device=nope') },
  ],
  ['a page far behind', { limit: 20, offset: SESSIONS - 100 }],
  ['an order without an index', { limit: 20, offset: 0, sort: ['target_host'] }],
])('are read in the thread with %s', async (_, wanted) => {
  const { store, path } = temp
  fillToSize(path, { devices: 1, targets: 1, sessions: SESSIONS })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  const { items, total } = await store.sessions.list({}, wanted)
  expect(rows).toHaveBeenCalled()
  // The same without a bound.
  const all = await store.sessions.list({}, { ...wanted, limit: -1, offset: 0 })
  expect(total).toBe(all.total)
  expect(items).toEqual(all.items.slice(wanted.offset, wanted.offset + wanted.limit))
})

it('count the rows of other tables that they ask', async () => {
  const { store, path } = temp
  fillToSize(path, { devices: 6000, targets: 1, sessions: 0 })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  // Each device has a domain of this name, and one account is of it.
  const { total } = await store.accounts.list(page('domain=local && account_name=svc1'))
  expect(rows).toHaveBeenCalled()
  expect(total).toBe(0)
})

it('are refused as any other if they look at too much text', async () => {
  const { store, path } = temp
  fillToSize(path, { devices: 1, targets: 1, sessions: SESSIONS })
  const database = new DatabaseSync(path)
  database.exec('update sessions set reason = hex(zeroblob(200))')
  database.close()
  expect(8 * 400 * SESSIONS).toBeGreaterThan(MAX_LOOKED_AT)
  const q = Array.from({ length: 8 }, (_, n) => `reason~x${n}*`).join(' || ')
  const refused = store.sessions.list({}, page(q))
  await expect(refused).rejects.toThrow(SearchError)
  await expect(refused).rejects.toMatchObject({ fault: 'value', expected: 'a narrower search' })
})

it('of much text in few rows are refused, and not those that an index narrows', async () => {
  const description = 'a'.repeat(60_000)
  const devices = Math.ceil(MAX_LOOKED_AT / 60_000 / 2) + 1
  await temp.store.transaction(async (store) => {
    for (let n = 0; n < devices; n++)
      await store.devices.create({ deviceName: `srv${n}`, host: 'h', description })
  })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  const total = async (q: string) => (await temp.store.devices.list(page(q))).total
  expect(await total('device_name=srv1 && description~ab || device_name=srv2')).toBe(1)
  expect(rows).not.toHaveBeenCalled()
  expect(await total('description~ab')).toBe(0)
  expect(rows).toHaveBeenCalled()
  await expect(total('description~ab || description~aab')).rejects.toThrow('more text than can be looked at')
  expect(await total('description~*')).toBe(devices)
})

it('stay here in a small collection', async () => {
  const { store, path } = temp
  fillToSize(path, { devices: 1, targets: 1, sessions: 100 })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  expect((await store.sessions.list({}, page('target_host=10.0.0.1'))).total).toBe(100)
  expect(rows).not.toHaveBeenCalled()
})

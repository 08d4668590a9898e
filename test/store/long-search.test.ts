/** Searches in a large collection that no index serves. */
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
const page = (q: string) => ({ limit: 20, offset: 5, search: { expression: parse(q), variables: {} } })

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

it('stay here in a small collection', async () => {
  const { store, path } = temp
  fillToSize(path, { devices: 1, targets: 1, sessions: 100 })
  const rows = vi.spyOn(ReadingThread.prototype, 'rows')
  expect((await store.sessions.list({}, page('target_host=10.0.0.1'))).total).toBe(100)
  expect(rows).not.toHaveBeenCalled()
})

import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import type { Obstacle } from '../../src/api/http/deps.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let obstacles: Obstacle[]
beforeAll(async () => {
  h = await startHarness({ obstacles: () => obstacles })
})
beforeEach(() => {
  obstacles = []
})
afterAll(() => h.close())

const probe = async (path: string, method: 'GET' | 'HEAD' | 'POST' = 'GET') => {
  const { statusCode, headers, body } = await h.api.inject({ method, url: path })
  return { status: statusCode, cache: headers['cache-control'], body }
}

test('a broker that serves is alive and ready', async () => {
  expect(await probe('/healthz')).toEqual({ status: 200, cache: 'no-store', body: '{"status":"ok"}' })
  expect(await probe('/readyz')).toEqual({ status: 200, cache: 'no-store', body: '{"status":"ready"}' })
  expect(await probe('/readyz', 'HEAD')).toMatchObject({ status: 200, body: '' })
})

test('one that cannot begin sessions says why, in a word for each part, and is alive', async () => {
  obstacles = ['database', 'recordings']
  const answer = await probe('/readyz')
  expect(answer.status).toBe(503)
  expect(JSON.parse(answer.body)).toEqual({ status: 'not_ready', obstacles: ['database', 'recordings'] })
  expect((await probe('/readyz', 'HEAD')).status).toBe(503)
  expect((await probe('/healthz')).status).toBe(200)
})

test('nothing else is there', async () => {
  expect((await probe('/healthz', 'POST')).status).toBe(404)
  expect((await probe('/healthz/x')).status).toBe(404)
  expect((await h.call('GET', '/healthz')).status).toBe(404)
})

/** Reviews of thousands of sessions: the loop goes on meanwhile, and each lost right ends its session, once. */
import { setImmediate as aside } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Crowd, crowd, idOf } from './crowd.ts'

const SESSIONS = 3000
const GROUPS = 3

let all: Crowd
beforeAll(async () => {
  all = await crowd(SESSIONS, { groups: GROUPS })
}, 300_000)
afterAll(() => all.temporary.remove())

test('a group of a thousand loses its right by another process, while the loop goes on', async () => {
  const { gate, temporary, sessions, stopped } = all
  const other = await temporary.open()
  await other.authorizations.update(idOf('grant', 1), { authorizeSessions: false })
  await other.close()
  let turns = 0
  let isOver = false
  const review = gate.review().finally(() => {
    isOver = true
  })
  while (!isOver) {
    await aside()
    turns++
  }
  await review
  expect(turns).toBeGreaterThan(20)
  const lost = sessions.filter((_, number) => number % GROUPS === 1)
  expect([...stopped].sort()).toEqual([...lost].sort())
  const events = await temporary.store.audit.range(0, 1_000_000)
  const killed = events.filter(({ code }) => code === 'session.kill')
  expect(killed.map(({ json }) => JSON.parse(json).fields.session).sort()).toEqual([...lost].sort())
})

test('all lose their group at once', async () => {
  const { gate, temporary, sessions, stopped } = all
  for (const number of [0, 2]) await temporary.store.userGroups.update(idOf('group', number), { userIds: [] })
  await gate.review()
  expect(stopped.size).toBe(sessions.length)
})

/** A group of 50,000 members, and a request with as many ids as fit into one: the event loop goes on meanwhile. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { ScimGroup } from '../../src/store/store.ts'
import { newAuthDomain } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

const USERS = 50_000
/** Ids in a request of 1 MiB. */
const SENT = 25_000

let temp: TemporaryStore
let domainId: string
let group: ScimGroup
const idOf = (at: number) => String(at).padStart(26, '0')
const ids = (from: number, count: number) => Array.from({ length: count }, (_, at) => idOf(from + at))

beforeAll(async () => {
  temp = await temporaryStore()
  const { scimGroups, authDomains } = temp.store
  domainId = (await authDomains.create(newAuthDomain('corp', { type: 'LDAP', externalAuthIds: [] }))).id
  group = await scimGroups.create(domainId, { displayName: 'Everybody' }, 1)
  const numbers = `with recursive n (i) as (select 0 union all select i + 1 from n where i < ${USERS - 1})`
  const id = `substr('${'0'.repeat(26)}' || i, -26)`
  await temp.sql(`insert into scim_users ${numbers} select ${id}, '${domainId}', null, 'u' || i, 'u' || i,
    null, '', 1, '{}', 1, 1, 1 from n; insert into scim_members ${numbers} select '${group.id}', ${id} from n`)
})
afterAll(() => temp.remove())

/** Runs the work, and returns how often the event loop went on to other work. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0
  let isDone = false
  const count = () => {
    turns++
    if (!isDone) setImmediate(count)
  }
  setImmediate(count)
  await work()
  isDone = true
  return turns
}

test('all ids of a large request are looked up, 200 at a time', async () => {
  const { scimGroups } = temp.store
  const strange = ['z'.repeat(26), idOf(USERS)]
  let found: string[] = []
  const turns = await turnsOf(async () => {
    found = await scimGroups.strangers(domainId, [...ids(0, SENT), ...strange])
  })
  expect(found).toEqual(strange)
  expect(turns).toBeGreaterThanOrEqual(SENT / 200)
})

test('a change of many members is made in short transactions, whoever was a member before', async () => {
  const { scimGroups } = temp.store
  const removed = new Set(ids(0, 1000))
  const turns = await turnsOf(async () => {
    group = await scimGroups.update(group, group, { isWhole: false, added: new Set(), removed }, 2)
  })
  expect(turns).toBeGreaterThanOrEqual(1000 / 25)
  expect(await scimGroups.memberCount(group.id)).toBe(USERS - 1000)
  const added = new Set(ids(500, SENT))
  group = await scimGroups.update(group, group, { isWhole: false, added, removed: new Set() }, 3)
  expect(await scimGroups.memberCount(group.id)).toBe(USERS - 500)
})

test('a group is replaced as a whole, of which a little has changed', async () => {
  const { scimGroups } = temp.store
  const added = new Set(ids(600, USERS - 600))
  const turns = await turnsOf(async () => {
    group = await scimGroups.update(group, group, { isWhole: true, added, removed: new Set() }, 4)
  })
  expect(turns).toBeGreaterThanOrEqual(USERS / 1000)
  expect(await scimGroups.memberCount(group.id)).toBe(USERS - 600)
})

/**
 * What SQLite does for the queries that a sign-in, a session, a review and a timer wait for: none of them may
 * grow with the number of accounts or of sessions that have ended.
 */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { parse } from '../../src/search/parser.ts'
import { openStore } from '../../src/store/open.ts'
import type { Page } from '../../src/store/store.ts'
import { type Estate, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

/** Tables that may have 100,000 rows and more. */
const LARGE = [
  'sessions',
  'audit',
  'accounts',
  'devices',
  'services',
  'domains',
  'uploads',
  'checkouts',
  'changes',
  'secret_jobs',
  'lockouts',
]

let temp: TemporaryStore
let estate: Estate
beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  // Opened anew, so that each statement is prepared once more.
  await temp.store.close()
  temp.store = await openStore({ path: temp.path })
})
afterEach(() => temp.remove())

/** Runs the work and returns the plans of its statements: each a line for each step. */
async function plansOf(work: () => Promise<unknown>): Promise<{ text: string; steps: string[] }[]> {
  const prepare = vi.spyOn(DatabaseSync.prototype, 'prepare')
  await work()
  const texts = prepare.mock.calls.map(([text]) => text)
  prepare.mockRestore()
  return texts.filter((text) => /^(select|update|delete|insert)/i.test(text)).map(planOf)
}

function planOf(text: string): { text: string; steps: string[] } {
  const database = new DatabaseSync(temp.path)
  database.function('is_like', () => 1)
  database.function('read_here', () => 1)
  // Aliases in the text name their tables.
  const tables = new Map(
    [...text.matchAll(/"(\w+)" as "(\w+)"/g)].map(([, table = '', alias = '']) => [alias, table]),
  )
  const rows = database.prepare(`explain query plan ${text}`).all() as { detail: string }[]
  database.close()
  const named = (step: string) =>
    step.replace(/^(SCAN|SEARCH) (\w+)/, (_, how, name) => `${how} ${tables.get(name) ?? name}`)
  return { text, steps: rows.map(({ detail }) => named(detail)) }
}

/** Indexes of a few rows of their table. */
const OF_FEW = /INDEX (sessions_(current|unsealed|deletable)|audit_(handovers|progress))$/

const scansOf = (steps: readonly string[]) =>
  steps.filter(
    (step) => LARGE.some((table) => new RegExp(`^SCAN ${table}\\b`).test(step)) && !OF_FEW.test(step),
  )

it('are told apart: a search by an unindexed field reads the whole table', () => {
  expect(scansOf(planOf("select * from sessions where target_host = 'x'").steps)).toEqual(['SCAN sessions'])
  expect(scansOf(planOf('select s.id from "sessions" as "s"').steps)).toHaveLength(1)
})

it('find a sign-in, a session and what a review asks by indexes', async () => {
  const { store } = temp
  const { user, userGroup, account, service, domain, targetGroup } = estate
  const plans = await plansOf(async () => {
    await store.users.find('ops1')
    await store.users.find(user.id)
    await store.users.lookingLike('ops1')
    await store.users.secretsOf(user.id)
    await store.access.sessionTargets(user.id, 0)
    await store.access.sessionTargets(user.id, 0, { device: 'srv1' })
    const asked = { userId: user.id, serviceId: service.id }
    await store.access.grants([
      { ...asked, accountId: account.id },
      { ...asked, accountId: undefined },
    ])
    await store.access.membersAmong([user.id], userGroup.id)
    await store.access.groupsAt(targetGroup.id)
    await store.users.some([user.id])
    await store.changes.after(3, 100)
    await store.changes.kept()
    await store.changes.removeOldest(5, 10)
    await store.access.hasMapping(user.id)
    await store.access.withTargets([user.id], 0)
    await store.access.retrievals([{ userId: user.id, accountId: account.id }])
    await store.accounts.find(account.id)
    await store.accounts.sealedCredentials(account.id)
    await store.accounts.meant({ account: 'root', device: 'srv1' }, 2)
    await store.domains.sealedAuthority(domain.id)
    await store.checkouts.active(account.id, 5)
    await store.checkouts.ofUser(user.id, 5)
    await store.checkouts.out(5)
    await store.checkouts.expired(5, 10)
    await store.checkouts.expired(5, 10, { expires: 1, id: 'X' })
    await store.accounts.severedRevisions([account.id])
    await store.lockouts.lockedNames(5)
    await store.hostKeys.ofService(service.id)
    await store.audit.append([{ sequence: 1, time: 1, code: 'x', json: '{}', hash: new Uint8Array(32) }])
    await store.audit.range(1, 10)
    await store.audit.ofSession('X', 10)
    await store.sessions.create(session('X'))
    await store.sessions.update('X', { end: 2, result: 'success' })
    await store.sessions.find('X')
  })
  expect(plans.length).toBeGreaterThan(20)
  expect(plans.filter(({ steps }) => scansOf(steps).length > 0)).toEqual([])
})

it('find what a start or a timer looks for by indexes', async () => {
  const { store } = temp
  const plans = await plansOf(async () => {
    await store.sessions.unsealed()
    await store.sessions.deletable(5, 10)
    await store.sessions.list({ status: 'current' })
    await store.uploads.due(5, 10, [])
    await store.uploads.waiting()
    await store.audit.progress(1, 1, 10)
    await store.audit.handovers()
    await store.auditSearch.checkpoints(1)
    await store.auditSearch.ends()
    await store.secretJobs.due(5, 10, [])
    await store.secretJobs.schedules(5, 10)
    await store.secretJobs.forgetSchedules()
  })
  expect(plans.filter(({ steps }) => scansOf(steps).length > 0)).toEqual([])
  const unsealed = plans.find(({ text }) => text.includes('"result" <>'))
  expect(unsealed?.steps.join()).toMatch(/sessions_unsealed/)
})

it.each<[string, (page: Page) => Promise<unknown>]>([
  ['sessions', (page) => temp.store.sessions.list({}, page)],
  ['sessions that have ended', (page) => temp.store.sessions.list({ status: 'closed' }, page)],
  ['accounts', (page) => temp.store.accounts.list(page)],
  ['devices', (page) => temp.store.devices.list(page)],
  ['services', (page) => temp.store.services.list(page)],
])('read the first page of %s in its order', async (_, list) => {
  const plans = await plansOf(() => list({ limit: 1, offset: 0 }))
  expect(plans.length).toBeGreaterThan(0)
  for (const { steps } of plans) expect(steps).not.toContain('USE TEMP B-TREE FOR ORDER BY')
})

it('show the number of sessions without counting those that have ended', async () => {
  const { store } = temp
  for (const id of ['A', 'B', 'C']) await store.sessions.create({ ...session(id), end: 2 })
  await store.sessions.create(session('D'))
  await expect(store.sessions.create(session('D'))).rejects.toThrow()
  const page = { limit: 1, offset: 0 }
  const totals: number[] = []
  const plans = await plansOf(async () => {
    for (const filter of [{}, { status: 'closed' as const }, { status: 'current' as const }])
      totals.push((await store.sessions.list(filter, page)).total)
  })
  expect(totals).toEqual([4, 3, 1])
  const scans = plans.filter(({ text }) => /count\(/.test(text)).flatMap(({ steps }) => scansOf(steps))
  expect(scans).toEqual([])
})

it.each(['user=ops1', 'device=srv1', 'account=root', 'source_ip=192.0.2.7', 'result=killed'])(
  'find the sessions of %s by an index',
  async (expression) => {
    await temp.store.sessions.create(session('X'))
    const search = { expression: parse(expression), variables: {} }
    const plans = await plansOf(() => temp.store.sessions.list({}, { limit: 20, offset: 0, search }))
    expect(plans.filter(({ steps }) => scansOf(steps).length > 0)).toEqual([])
  },
)

const session = (id: string) => ({
  id,
  begin: 1,
  user: 'ops1',
  sourceIp: '192.0.2.7',
  protocol: 'SSH' as const,
  subprotocols: [],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '10.0.0.1',
  result: 'killed' as const,
  authorization: 'ug:tg',
  isRecorded: false,
  bytesIn: 0,
  bytesOut: 0,
})

it('find the noted progress of recordings by its time', async () => {
  const [plan] = await plansOf(() => temp.store.audit.progress(1, 0, 10))
  expect(plan?.steps).toContain('SEARCH audit USING INDEX audit_progress (time>?)')
})

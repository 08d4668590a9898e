/**
 * One side of a comparison of stores: a program of its own, which does the work that its parent names and tells what it
 * took (store.ts). It also runs in the tree of an older commit, by that tree's own `src/`.
 */
import { randomInt } from 'node:crypto'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { performance } from 'node:perf_hooks'
import { inspect } from 'node:util'
import type { AttemptCounter } from '../../src/identity/attempts.ts'
import { Identities } from '../../src/identity/chain.ts'
import type { Store } from '../../src/store/store.ts'
import { openVault } from '../../src/vault/vault.ts'
import { startHarness } from '../api/harness.ts'
import { type Crowd, crowd, crowdPlace, idOf, type Place } from '../gate/crowd.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { newAccount, newUser } from '../store/fixture.ts'

/** Users, and targets, of the small estate. */
const ESTATE = 2000
const PAGE = 100
const TOGETHER = 16
const API_USERS = 50
export const CLIENTS = 256
/** Sessions that are closed at a time after their end. */
const CLOSING = 256

/** Works that are measured, and how often in a round. */
export const WORKS = {
  read: 500,
  page: 50,
  'create a user': 60,
  'create an account': 60,
  'create 16 users at once': 8,
  'sign in at the API': 30,
  'log in by SSH': 20,
  'an event': 100,
  'events of 256 clients': 30 * CLIENTS,
} as const
export type Work = keyof typeof WORKS

export type SideOrder = { work: Work; count: number } | { revoke: number } | { end: true }

/** Cost of one work. */
export interface Took {
  count: number
  /** Milliseconds. */
  wall: number
  /** Milliseconds of processor time of this program with all its threads. */
  cpu: number
  /** Those of them of the event loop. */
  loop: number
  /** Median of one, in milliseconds; absent where they are done together. */
  median?: number
}

export interface Revoked {
  /** Until the event of each end is written. */
  told: Took
  /** Until each session is closed. */
  closed: Took
}

export type SideNews = { ready: true } | { took: Took } | { revoked: Revoked } | { failed: string }

const SHARED_LOCKOUT = new URL('../../src/identity/shared-lockout.ts', import.meta.url)

/** Returns the lock-out that the broker has: before there was a shared one, that of the memory. */
async function lockouts(): Promise<{ lockout?: (store: Store) => AttemptCounter }> {
  if (!existsSync(SHARED_LOCKOUT)) return {}
  const { SharedLockout } = await import(SHARED_LOCKOUT.href)
  return { lockout: (store) => new SharedLockout(store.lockouts) }
}

/** Does the work `count` times, one after the other. */
async function repeated(count: number, work: (n: number) => Promise<unknown>): Promise<Took> {
  const each: number[] = []
  const took = await measured(count, async () => {
    for (let n = 0; n < count; n++) {
      const begin = performance.now()
      await work(n)
      each.push(performance.now() - begin)
    }
  })
  each.sort((a, b) => a - b)
  return { ...took, median: each[Math.floor(count / 2)]! }
}

async function measured(count: number, work: () => Promise<void>): Promise<Took> {
  const before = process.cpuUsage()
  const loopBefore = process.threadCpuUsage()
  const begin = performance.now()
  await work()
  const wall = performance.now() - begin
  const sum = ({ user, system }: NodeJS.CpuUsage) => (user + system) / 1000
  return { count, wall, cpu: sum(process.cpuUsage(before)), loop: sum(process.threadCpuUsage(loopBefore)) }
}

/** Does the work for each number below `count`, as many `together` as said. */
async function together(count: number, most: number, work: (n: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++)
  }
  await Promise.all(Array.from({ length: most }, worker))
}

let names = 0
const newName = (): string => `made${names++}`

type Runner = Record<Work, (count: number) => Promise<Took>>

async function openSide(): Promise<{ run: Runner; close(): Promise<void> }> {
  const options = await lockouts()
  const place = await crowdPlace(ESTATE, options)
  const api = await openApi(options)
  const { audit, open } = place
  const { store } = place.temporary
  const record = () =>
    audit.record('auth.success', {
      protocol: 'SSH',
      client_ip: '192.0.2.7',
      user: 'ops1',
      method: 'publickey',
      profile: 'user',
    })
  const createUser = () => store.users.create(newUser(newName(), { groupIds: [idOf('group')] }))
  // The first session at a target stores its credential, which is no part of a login.
  for (let n = 0; n < WORKS['log in by SSH']; n++) await close(place, await open(n))
  const run: Runner = {
    read: (count) => repeated(count, () => store.users.find(idOf('user', randomInt(ESTATE)))),
    page: (count) =>
      repeated(count, () => store.devices.list({ limit: PAGE, offset: randomInt(ESTATE - PAGE) })),
    'create a user': (count) => repeated(count, createUser),
    'create an account': (count) =>
      repeated(count, () => store.accounts.create(newAccount(idOf('domain', randomInt(ESTATE)), newName()))),
    'create 16 users at once': async (count) => {
      const took = await repeated(count, () => Promise.all(Array.from({ length: TOGETHER }, createUser)))
      return { ...took, count: count * TOGETHER }
    },
    'sign in at the API': (count) => repeated(count, () => api.signIn()),
    'log in by SSH': (count) =>
      repeated(count, async (n) => close(place, await open(n % WORKS['log in by SSH']))),
    'an event': (count) => repeated(count, record),
    'events of 256 clients': (count) => measured(count, () => together(count, CLIENTS, record)),
  }
  return {
    run,
    async close() {
      await audit.close()
      await api.close()
      await place.temporary.remove()
    },
  }
}

/** Ends a session as its proxy does. */
async function close({ gate }: Pick<Place, 'gate'>, session: string, isKilled = false): Promise<void> {
  const result = isKilled ? 'killed' : 'success'
  await gate.close({ session, result, rightsUsed: ['SSH_SHELL'], bytesIn: 100, bytesOut: 1000 })
}

/** The API with a hash that costs next to nothing. */
async function openApi({ lockout }: { lockout?: (store: Store) => AttemptCounter }) {
  let real: Identities | undefined
  // The harness makes the store that they need.
  const identities = new Proxy({} as Identities, {
    get: (_, name) => {
      const value: unknown = Reflect.get(real!, name)
      return typeof value === 'function' ? value.bind(real) : value
    },
  })
  const harness = await startHarness(lockout && { identities })
  const { api, store, database, clock } = harness
  const vault = await openVault(store, { file: join(dirname(database), 'master.key') })
  if (lockout) {
    real = new Identities(store.users, quickHasher(), lockout(store), () => clock.now, vault)
  }
  // Several, or each would soon have as many sign-ins as a user may have.
  for (let n = 0; n < API_USERS; n++) await harness.addUser(`auditor${n}`, 'auditor')
  let next = 0
  return {
    async signIn(): Promise<void> {
      const user = `auditor${next++ % API_USERS}`
      const payload = { user, password: `${user} password` }
      const answer = await api.inject({ method: 'POST', url: '/api/v3.12/session', payload })
      if (answer.statusCode !== 200) throw new Error(answer.body)
    },
    close: () => harness.close(),
  }
}

/** Takes the authorization of all sessions away, and closes each one that is told to end. */
async function revoke(count: number): Promise<Revoked> {
  const all: Crowd = await crowd(count, await lockouts())
  const { gate, stopped, temporary } = all
  try {
    const told = await measured(count, async () => {
      await temporary.store.authorizations.update(idOf('grant'), { authorizeSessions: false })
      await gate.review()
    })
    const ends = [...stopped]
    if (ends.length !== count) throw new Error(`expected ${count} sessions to be told, got ${ends.length}`)
    const closed = await measured(count, () => together(count, CLOSING, (n) => close(all, ends[n]!, true)))
    return { told, closed }
  } finally {
    await temporary.remove()
  }
}

const report = (news: SideNews): void => void process.send?.(news)

let side: Awaited<ReturnType<typeof openSide>> | undefined

async function obey(order: SideOrder): Promise<SideNews> {
  if ('revoke' in order) return { revoked: await revoke(order.revoke) }
  if ('end' in order) {
    await side?.close()
    process.disconnect()
    return { ready: true }
  }
  side ??= await openSide()
  return { took: await side.run[order.work](order.count) }
}

process.on('message', (order: SideOrder) => {
  obey(order).then(
    (news) => process.connected && report(news),
    (error: unknown) => report({ failed: inspect(error) }),
  )
})

/**
 * Requests for approval against a model, on both engines: any sequence of requests, answers, ends, uses and losses of
 * rights, by two processes, with the process killed between any two steps. Attack case 25.
 */
import fc from 'fast-check'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Approval, holds } from '../../src/model/approvals.ts'
import { NO_CONDITIONS } from '../../src/model/conditions.ts'
import type { User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'
import { isOnPostgres } from '../peers/databases.ts'
import { times } from '../times.ts'
import { type Estate, newApproval, newUser, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

const LIMITS = { ofUser: 1_000_000, all: 1_000_000 }
const HOUR = 3_600_000
const PEOPLE = 4

let temp: TemporaryStore
let estate: Estate
/** The requester, also an approver, and three others. */
let people: User[]
/** Two processes on the same data. */
let stores: Store[]
beforeEach(async () => {
  temp = await temporaryStore()
  const { store } = temp
  estate = await smallEstate(store)
  const groups = [
    await store.userGroups.create({ groupName: 'chiefs', description: '', userIds: [] }),
    await store.userGroups.create({ groupName: 'heads', description: '', userIds: [] }),
  ].map(({ id }) => id)
  const { user, authorization } = estate
  const requester = await store.users.update(user.id, {
    profile: 'approver',
    groupIds: [...user.groupIds, ...groups],
  })
  people = [requester]
  for (let n = 1; n < PEOPLE; n++)
    people.push(await store.users.create(newUser(`chief${n}`, { profile: 'approver', groupIds: groups })))
  const conditions = { ...NO_CONDITIONS, approvalRequired: true, approverGroupIds: groups.toSorted() }
  await store.authorizations.update(authorization.id, { conditions })
  stores = [store, await temp.open()]
})
afterEach(async () => {
  await stores[1]!.close()
  await temp.remove()
})

/** An independent account of the stored approval. */
interface Real {
  id: string
  now: number
}
interface Model {
  quorum: number
  isSingle: boolean
  state: Approval['state']
  accepted: Set<number>
  rejected: boolean
  /** Places in `people` that may answer. */
  able: Set<number>
  uses: number
  now: number
  end: number | undefined
  answerBy: number
}
type Step = fc.AsyncCommand<Model, Real>

const given = (who: number, approved: boolean, now: number) => ({
  userId: people[who]!.id,
  userName: people[who]!.userName,
  approved,
  comment: '',
  time: now,
  apiKey: '',
})

function step(name: string, run: (model: Model, real: Real) => Promise<void>): Step {
  return { check: () => true, run, toString: () => name }
}

const answering = (who: number, approved: boolean, process: number): Step =>
  step(`${approved ? 'accept' : 'reject'} by ${who} at ${process}`, async (m, r) => {
    const done = await stores[process]!.approvals.answer(r.id, given(who, approved, m.now))
    const isPending = m.state === 'pending' && m.now < m.answerBy
    const counts = isPending && who !== 0 && m.able.has(who) && !m.accepted.has(who)
    expect(typeof done === 'object').toBe(counts)
    if (!counts) return
    if (!approved) m.state = 'rejected'
    else m.accepted.add(who)
    if (m.state === 'pending' && m.accepted.size >= m.quorum) {
      m.state = 'accepted'
      m.end = m.now + HOUR
    }
  })

/** Two answers at the same moment at two processes: the result is that of one order or the other. */
const racing = (first: number, second: number): Step =>
  step(`${first} and ${second} accept at once`, async (m, r) => {
    const done = await Promise.all(
      [first, second].map((who, at) => stores[at]!.approvals.answer(r.id, given(who, true, m.now))),
    )
    const isPending = m.state === 'pending' && m.now < m.answerBy
    const able = [...new Set([first, second])].filter(
      (who) => isPending && who !== 0 && m.able.has(who) && !m.accepted.has(who),
    )
    const counted = Math.min(able.length, Math.max(0, m.quorum - m.accepted.size))
    expect(done.filter((one) => typeof one === 'object')).toHaveLength(counted)
    for (const [at, who] of [first, second].entries()) if (typeof done[at] === 'object') m.accepted.add(who)
    if (counted > 0 && m.accepted.size >= m.quorum) {
      m.state = 'accepted'
      m.end = m.now + HOUR
    }
  })

const cancelling = (process: number): Step =>
  step(`cancel at ${process}`, async (m, r) => {
    const done = await stores[process]!.approvals.cancel(r.id, { by: 'x', comment: '', time: m.now })
    const may =
      (m.state === 'pending' && m.now < m.answerBy) || (m.state === 'accepted' && m.now < (m.end ?? 0))
    expect(typeof done === 'object').toBe(may)
    if (may) m.state = 'cancelled'
  })

const using = (): Step =>
  step('use at both at once', async (m, r) => {
    const done = await Promise.all(stores.map((store) => store.approvals.use(r.id, m.now)))
    const isOpen = m.state === 'accepted' && m.now < (m.end ?? 0)
    const most = !isOpen ? 0 : m.isSingle ? Math.max(0, 1 - m.uses) : 2
    expect(done.filter((one) => typeof one === 'object')).toHaveLength(most)
    m.uses += most
  })

const expiring = (): Step =>
  step('expire', async (m, r) => {
    const done = await stores[0]!.approvals.expire(r.id, m.now)
    const may = m.state === 'pending' && m.now >= m.answerBy
    expect(typeof done === 'object').toBe(may)
    if (may) m.state = 'expired'
  })

const later = (ms: number): Step =>
  step(`${ms} ms later`, async (m) => {
    m.now += ms
  })

const losing = (who: number): Step =>
  step(`${who} loses or gets the right`, async (m) => {
    const isAble = m.able.has(who)
    await stores[0]!.users.update(people[who]!.id, { isDisabled: isAble })
    if (isAble) m.able.delete(who)
    else m.able.add(who)
  })

/** The process is gone, and another begins: nothing is known but what is stored. */
const crashing = (): Step =>
  step('crash', async () => {
    await stores[1]!.close()
    stores[1] = await temp.open()
  })

/** The stored one agrees with the account after each step. */
const looking = (command: Step): Step => ({
  check: (model) => command.check(model),
  toString: () => command.toString(),
  async run(model, real) {
    await command.run(model, real)
    const found = await stores[1]!.approvals.find(real.id)
    expect(found?.state).toBe(model.state)
    expect(found?.uses).toBe(model.uses)
    const agreed = found!.answers.filter(({ approved }) => approved).map(({ userId }) => userId)
    expect(new Set(agreed)).toEqual(new Set([...model.accepted].map((who) => people[who]!.id)))
    expect(agreed).toHaveLength(model.accepted.size)
    expect(agreed).not.toContain(people[0]!.id)
    if (found!.state === 'accepted') expect(agreed.length).toBeGreaterThanOrEqual(model.quorum)
    expect(holds(found!, model.now)).toBe(model.state === 'accepted' && model.now < (model.end ?? 0))
  },
})

test('any sequence of steps, at two processes, with crashes between', async () => {
  const who = fc.integer({ min: 0, max: PEOPLE - 1 })
  const process = fc.integer({ min: 0, max: 1 })
  const commands = fc.commands(
    [
      fc.tuple(who, fc.boolean(), process).map(([a, b, c]) => looking(answering(a, b, c))),
      fc.tuple(who, process).map(([a, c]) => looking(answering(a, true, c))),
      fc.tuple(who, who).map(([a, b]) => looking(racing(a, b))),
      process.map((one) => looking(cancelling(one))),
      fc.constant(looking(using())),
      fc.constant(looking(expiring())),
      fc.constantFrom(1, HOUR / 2, HOUR).map((ms) => looking(later(ms))),
      fc.integer({ min: 1, max: PEOPLE - 1 }).map((one) => looking(losing(one))),
      fc.constant(looking(crashing())),
    ],
    { maxCommands: 12 },
  )
  await fc.assert(
    fc.asyncProperty(
      commands,
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
      async (all, quorum, isSingle) => {
        for (const one of people) await stores[0]!.users.update(one.id, { isDisabled: false })
        const now = 1_000
        const more = { quorum, isSingle, answerBy: now + 2 * HOUR }
        const made = await stores[0]!.approvals.create(newApproval(estate, now, more), LIMITS)
        await fc.asyncModelRun(
          () => ({
            model: {
              ...{ quorum, isSingle, now, uses: 0, rejected: false },
              state: 'pending' as const,
              accepted: new Set<number>(),
              able: new Set([0, 1, 2, 3]),
              end: undefined,
              answerBy: more.answerBy,
            },
            real: { id: made!.id, now },
          }),
          all,
        )
      },
    ),
    { numRuns: times(isOnPostgres() ? 8 : 25, 500) },
  )
}, 300_000)

test('of those that wait, at most as many as the limits say', async () => {
  const create = () => temp.store.approvals.create(newApproval(estate, 1), { ofUser: 3, all: 5 })
  const made = await Promise.all(Array.from({ length: 6 }, create))
  expect(made.filter((one) => one !== undefined)).toHaveLength(3)
  expect(await temp.store.approvals.pending()).toBe(3)
})

test('a held command that is over keeps its line without the screen, and is removed when it is long over', async () => {
  const { approvals } = stores[0]!
  const held = { kind: 'command' as const, detail: 'rm -rf /', screen: Uint8Array.of(1, 2) }
  const made = await approvals.create(newApproval(estate, 1_000, held), LIMITS)
  const { id } = made!
  const found = await approvals.find(id)
  expect([found?.detail, [...(found?.screen ?? [])]]).toEqual(['rm -rf /', [1, 2]])
  await approvals.cancel(id, { by: 'x', comment: '', time: 2_000 })
  const { detail, screen } = (await approvals.find(id))!
  expect([detail, screen]).toEqual(['rm -rf /', undefined])
  const accepted = await approvals.create(newApproval(estate, 1_000), LIMITS)
  await approvals.answer(accepted!.id, given(1, true, 1_500))
  await approvals.create(newApproval(estate, 1_000), LIMITS)
  expect(await approvals.removeEnded(2_000, 10)).toBe(0)
  expect(await approvals.removeEnded(2_001, 10)).toBe(1)
  expect(await approvals.removeEnded(1_500 + HOUR, 10)).toBe(0)
  expect(await approvals.removeEnded(1_501 + HOUR, 10)).toBe(1)
  expect(await approvals.pending()).toBe(1)
})

test('the members of groups are counted once, those apart that can answer', async () => {
  const [store] = stores as [Store]
  const { items } = await store.userGroups.list()
  const ids = items.map(({ id }) => id)
  expect(await store.approvals.membersOf(ids, 1_000)).toEqual({ all: PEOPLE, able: PEOPLE })
  await store.users.update(people[1]!.id, { expirationDate: 1_000 })
  expect(await store.approvals.membersOf(ids, 999)).toEqual({ all: PEOPLE, able: PEOPLE })
  expect(await store.approvals.membersOf(ids, 1_000)).toEqual({ all: PEOPLE, able: PEOPLE - 1 })
  await store.users.update(people[2]!.id, { isLocked: true })
  await store.users.update(people[3]!.id, { profile: 'user' })
  expect(await store.approvals.membersOf(ids, 1_000)).toEqual({ all: PEOPLE, able: 1 })
  expect(await store.approvals.membersOf([], 1_000)).toEqual({ all: 0, able: 0 })
})

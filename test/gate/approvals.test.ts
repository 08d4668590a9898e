/**
 * Approvals at the gate: asked for by a connection or before, answered by another, and followed by what they opened.
 * Attack cases 24 and 25.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { GateNotice, OpenAnswer } from '../../src/contract/gate.ts'
import { Approvals } from '../../src/gate/approvals.ts'
import { Touched } from '../../src/gate/touched.ts'
import { Waits } from '../../src/gate/waits.ts'
import { NO_CONDITIONS } from '../../src/model/conditions.ts'
import type { Conditions, User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'
import { processorTime } from '../processor-time.ts'
import { newUser } from '../store/fixture.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

const TARGET = 'root@local:srv1:vnc'
const HOUR = 3_600_000

let world: VncWorld
let store: Store
let chiefs: User[]
let notices: GateNotice[]
beforeEach(async () => {
  world = await vncWorld()
  store = world.temporary.store
  const group = await store.userGroups.create({ groupName: 'chiefs', description: '', userIds: [] })
  const approver = (name: string) =>
    store.users.create(newUser(name, { profile: 'approver', groupIds: [group.id] }))
  chiefs = [await approver('chief1'), await approver('chief2'), await approver('chief3')]
  await conditions({ approvalRequired: true, approverGroupIds: [group.id] })
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => world.temporary.remove())

/** Changes conditions of the authorization. */
async function conditions(change: Partial<Conditions>): Promise<void> {
  const { id } = world.estate.authorization
  const old = (await store.authorizations.find(id))?.conditions ?? NO_CONDITIONS
  await store.authorizations.update(id, { conditions: { ...old, ...change } })
}
const events = async (code: string) =>
  (await world.events()).filter(([one]) => one === code).map(([, fields]) => fields)
const waitOf = (answer: OpenAnswer) => {
  if (answer.result !== 'approval_pending') throw new Error(JSON.stringify(answer))
  return answer.wait
}
const answer = (id: string, approved = true, [chief] = chiefs, more: { duration?: number } = {}) =>
  world.gate.approvals.answer(
    id,
    { userId: chief!.id, name: chief!.userName, fields: {} },
    { approved, comment: approved ? 'go on' : 'not today', apiKey: '', ...more },
  )
const revoke = (id: string) => world.gate.approvals.cancel(id, { name: 'chief1', comment: 'enough' })
const states = () => notices.flatMap((one) => (one.type === 'approval' ? [`${one.state}: ${one.text}`] : []))
/** Asks before, as the API does. */
const asked = (more: Partial<Parameters<Approvals['ask']>[0]> = {}) =>
  world.gate.approvals.ask(
    {
      kind: 'session',
      userId: world.estate.user.id,
      userName: 'ops1',
      authorizationId: world.estate.authorization.id,
      authorizationName: 'ops:servers',
      target: TARGET,
      serviceId: world.service,
      accountId: world.estate.account.id,
      login: '',
      duration: HOUR,
      comment: '',
      ticket: '',
      quorum: 1,
      ...more,
    },
    {},
  )

describe('a connection', () => {
  test('asks, waits, and is opened by the approval, which the session, its event and its row name', async () => {
    const identity = await world.signIn()
    const wait = waitOf(await world.open({ identity }))
    expect(wait).toMatchObject({ target: TARGET, expires: world.clock.now + HOUR })
    expect(wait.lines.join('\n')).toMatch(/chiefs; one of them has to agree/)
    expect(world.gate.running).toBe(0)
    await answer(wait.approval)
    await world.gate.review()
    expect(notices).toEqual([
      {
        type: 'approval',
        identity,
        approval: wait.approval,
        state: 'accepted',
        text: 'accepted by chief1: go on',
      },
    ])
    const opened = await world.open({ identity, approval: wait.approval })
    if (opened.result !== 'opened') throw new Error(JSON.stringify(opened))
    expect(await events('session.open')).toMatchObject([
      { approval: wait.approval, session: opened.session.id },
    ])
    expect(await store.sessions.find(opened.session.id)).toMatchObject({ approval: wait.approval })
    expect((await store.approvals.details([wait.approval])).get(wait.approval)?.sessions).toEqual([
      opened.session.id,
    ])
    expect(await events('approval.request')).toMatchObject([
      { user: 'ops1', object: wait.approval, count: 1 },
    ])
    expect(await events('approval.answer')).toMatchObject([
      { user: 'chief1', holder: 'ops1', result: 'accepted' },
    ])
  })

  test('gets nothing before: the same wait, whatever it sends, and a denial for the approval of another', async () => {
    const identity = await world.signIn()
    const { approval } = waitOf(await world.open({ identity }))
    expect(waitOf(await world.open({ identity, approval })).approval).toBe(approval)
    const other = await store.users.create(newUser('ops2', { groupIds: world.estate.user.groupIds }))
    const foreign = await asked({ userId: other.id, userName: 'ops2' })
    await answer(foreign!.id)
    expect(await world.open({ identity, approval: foreign!.id })).toMatchObject({ result: 'denied' })
    expect(await world.open({ identity, approval: 'made-up' })).toMatchObject({ result: 'denied' })
    expect(world.gate.running).toBe(0)
    expect(await events('session.open')).toEqual([])
  })

  test('is told of each answer, and of a rejection at once', async () => {
    await conditions({ activeQuorum: 2 })
    const identity = await world.signIn()
    const { approval } = waitOf(await world.open({ identity }))
    await answer(approval)
    await world.gate.review()
    await answer(approval, false, [chiefs[1]!])
    await world.gate.review()
    expect(states()).toEqual(['pending: 1 of 2 have agreed', 'rejected: rejected by chief2: not today'])
    expect(await world.open({ identity, approval })).toMatchObject({
      result: 'denied',
      message: 'the session was not approved: rejected by chief2: not today',
    })
  })

  test('cancels its request when it leaves or gives up; one by the API stays', async () => {
    const [first, second] = [await world.signIn(), await world.signIn()]
    const one = waitOf(await world.open({ identity: first })).approval
    await world.gate.leave({ identity: first })
    expect(await store.approvals.find(one)).toMatchObject({
      state: 'cancelled',
      ended: { by: 'ops1', comment: 'cancelled by the requester' },
    })
    const two = waitOf(await world.open({ identity: second })).approval
    await world.gate.withdraw({ identity: second, approval: two })
    expect(await store.approvals.find(two)).toMatchObject({ state: 'cancelled' })
    const made = await asked()
    expect(waitOf(await world.open({ identity: second })).approval).toBe(made?.id)
    await world.gate.leave({ identity: second })
    expect(await store.approvals.find(made!.id)).toMatchObject({ state: 'pending' })
  })

  test('that leaves while its request is being stored leaves none behind', async () => {
    const identity = await world.signIn()
    const asking = world.gate.approvals.ask.bind(world.gate.approvals)
    vi.spyOn(world.gate.approvals, 'ask').mockImplementation(async (...request) => {
      const made = await asking(...request)
      await world.gate.leave({ identity })
      return made
    })
    expect(await world.open({ identity })).toMatchObject({ result: 'denied' })
    expect(await store.approvals.pending()).toBe(0)
  })

  test('that waits at a broker that is replaced is sent away, and its request found when it is back', async () => {
    await conditions({ singleConnection: true })
    const [first, second] = [await world.signIn(), await world.signIn()]
    const { approval } = waitOf(await world.open({ identity: first }))
    const held = await asked({ kind: 'command', session: 'S', connection: world.gate.approvals.process })
    await world.gate.dismissWaiting()
    expect(states()).toEqual([
      `cancelled: a newer broker takes over: connect again, the request ${approval} stays`,
    ])
    await world.gate.leave({ identity: first })
    const next = new Approvals({
      store,
      vault: world.vault,
      audit: { record: async () => undefined },
      now: () => world.clock.now,
    })
    await next.cancelAbandoned((session) => session === 'S')
    expect(await store.approvals.find(held!.id)).toMatchObject({ state: 'pending' })
    expect(waitOf(await world.open({ identity: second })).approval).toBe(approval)
    await answer(approval)
    expect(await world.open({ identity: second })).toMatchObject({ result: 'opened' })
  })

  test('that waited at a broker that is gone: its request is cancelled at the next start, accepted ones stay', async () => {
    const { approval } = waitOf(await world.open())
    const kept = await asked()
    await answer(kept!.id)
    const next = new Approvals({
      store,
      vault: world.vault,
      audit: { record: async () => undefined },
      now: () => world.clock.now,
    })
    await next.cancelAbandoned()
    expect(await store.approvals.find(approval)).toMatchObject({ state: 'cancelled' })
    expect(await store.approvals.find(kept!.id)).toMatchObject({ state: 'accepted' })
    await world.gate.review()
    expect(states()).toEqual(['cancelled: cancelled by ops1: the connection that waited is gone'])
  })

  test('that waited at a broker that is gone: any number of requests, overdue or not, is ended at the start', async () => {
    const made = await asked({ connection: 'gone' })
    const { id: _id, ...same } = made!
    const create = (more: object) =>
      store.approvals.create({ ...same, ...more }, { ofUser: 1_000, all: 1_000 })
    await store.transaction(async (inner) => {
      for (let n = 0; n < 250; n++)
        await inner.approvals.create(
          { ...same, answerBy: n < 100 ? world.clock.now : world.clock.now + HOUR },
          { ofUser: 1_000, all: 1_000 },
        )
    })
    await create({ session: 'runs elsewhere' })
    const ended: unknown[] = []
    const next = new Approvals({
      store,
      vault: world.vault,
      audit: { record: async (_code, fields) => void ended.push((fields as { result: string }).result) },
      now: () => world.clock.now,
    })
    await next.cancelAbandoned((session) => session === 'runs elsewhere')
    expect(await store.approvals.pending()).toBe(1)
    expect(ended.filter((one) => one === 'expired')).toHaveLength(100)
    expect(ended.filter((one) => one === 'cancelled')).toHaveLength(151)
    // Simultaneous runs end each once, also when it is answered or cancelled meanwhile.
    const overdue = await create({ answerBy: world.clock.now })
    ended.length = 0
    await Promise.all([next.expireOverdue(), next.expireOverdue(), next.expire(overdue!.id)])
    expect(ended).toEqual(['expired'])
  })

  test('whose request cannot be ended keeps no session that was revoked', async () => {
    await conditions({ approvalTimeout: 60, approvalRequired: false })
    const session = await world.opened()
    await conditions({ approvalRequired: true })
    waitOf(await world.open())
    await store.authorizations.remove(world.estate.authorization.id)
    world.clock.now += HOUR
    vi.spyOn(world.gate.approvals, 'expireOverdue').mockRejectedValue(new Error('cannot be written'))
    await expect(world.gate.review()).rejects.toThrow('cannot be written')
    expect(notices).toMatchObject([{ type: 'stop', session: session.id }])
  })

  test('is asked for the reason that its authorization wants, which the approvers see', async () => {
    await conditions({ hasComment: true, mandatoryComment: true, hasTicket: true })
    const identity = await world.signIn()
    const question = { target: TARGET, comment: 'mandatory', ticket: 'optional', asksDuration: true }
    expect(await world.open({ identity })).toEqual({ result: 'reason_needed', question })
    expect(await world.open({ identity, reason: { comment: ' ', ticket: '' } })).toEqual({
      result: 'reason_needed',
      question: { ...question, flaw: 'a comment is needed' },
    })
    for (const comment of ['a\u001b[2J', 'a\u202eb', 'x'.repeat(1_001), '\n'.repeat(20)])
      expect(await world.open({ identity, reason: { comment, ticket: '' } })).toMatchObject({
        result: 'reason_needed',
      })
    const reason = { comment: 'disk is full\nplease', ticket: 'CHG-1', duration: 600 }
    const { approval } = waitOf(await world.open({ identity, reason }))
    expect(await store.approvals.find(approval)).toMatchObject({
      comment: reason.comment,
      ticket: 'CHG-1',
      duration: 600_000,
    })
  })

  test('without an approval gives the reason alone, which its session keeps', async () => {
    await conditions({ approvalRequired: false, hasComment: true, isCritical: true })
    const identity = await world.signIn()
    expect(await world.open({ identity })).toMatchObject({ result: 'reason_needed' })
    const opened = await world.open({ identity, reason: { comment: 'look', ticket: '' } })
    if (opened.result !== 'opened') throw new Error(JSON.stringify(opened))
    expect(await store.sessions.find(opened.session.id)).toMatchObject({ comment: 'look' })
    expect(await events('session.open')).toMatchObject([{ reason: 'look', critical: 'true' }])
  })

  test('asks at most twenty times at once', async () => {
    for (let n = 0; n < 20; n++) await asked({ begin: world.clock.now + HOUR })
    expect(await world.open()).toMatchObject({ result: 'denied', message: /too many requests/ })
    expect(await store.approvals.pending()).toBe(20)
  })

  test('asks at most two hundred times an hour, though it gives each up', async () => {
    const none = {
      find: async () => undefined,
      isFull: async () => false,
      create: async (one: object) => one,
    }
    const approvals = new Approvals({
      store: { approvals: none, authorizations: none } as unknown as Store,
      vault: world.vault,
      audit: { record: async () => undefined },
      now: () => world.clock.now,
    })
    const request = (await asked())!
    const made = await Promise.all(Array.from({ length: 202 }, () => approvals.ask(request, {})))
    expect(made.filter((one) => one !== undefined)).toHaveLength(200)
    world.clock.now += HOUR
    expect(await approvals.ask(request, {})).toBeDefined()
  })
})

describe('an approval', () => {
  test('of a request made before opens in its time only, and once if it is single', async () => {
    await conditions({ singleConnection: true })
    const made = await asked({ begin: world.clock.now + HOUR })
    await answer(made!.id)
    expect(await world.open()).toMatchObject({ result: 'approval_pending' })
    world.clock.now += HOUR
    expect(await world.open()).toMatchObject({ result: 'opened' })
    expect(await world.open()).toMatchObject({ result: 'approval_pending' })
    expect(await store.approvals.find(made!.id)).toMatchObject({ uses: 1 })
  })

  test('is not used up by a session that could not be opened', async () => {
    await conditions({ singleConnection: true })
    const made = await asked()
    await answer(made!.id)
    await store.checkoutPolicies.update((await store.checkoutPolicies.find('default'))!.id, {
      enableLock: true,
    })
    const other = await store.users.create(newUser('ops2'))
    const { account } = world.estate
    const begun = { accountId: account.id, userId: other.id, begin: world.clock.now }
    const out = await store.checkouts.create({ ...begun, expires: world.clock.now + HOUR }, true)
    expect(await world.open()).toMatchObject({ result: 'denied' })
    await store.checkouts.end(out.id, world.clock.now)
    expect(await world.open()).toMatchObject({ result: 'opened' })
  })

  test('that is revoked ends its sessions, with an event that says why; also by another process', async () => {
    const made = await asked()
    await answer(made!.id)
    const session = await world.opened()
    await world.gate.review()
    const other = await world.temporary.open()
    const elsewhere = new Approvals({
      store: other,
      vault: world.vault,
      audit: { record: async () => undefined },
      now: () => world.clock.now,
    })
    await elsewhere.cancel(made!.id, { name: 'chief1', comment: 'enough' })
    await other.close()
    await world.gate.review()
    const reason = 'the approval was revoked by chief1: enough'
    expect(notices).toEqual([{ type: 'stop', session: session.id, reason }])
    expect(await events('session.kill')).toMatchObject([{ session: session.id, reason }])
    expect(await world.open()).toMatchObject({ result: 'approval_pending' })
  })

  test('that ends, ends its sessions, after a warning', async () => {
    const made = await asked({ duration: 10 * 60_000 })
    await answer(made!.id, true, chiefs, { duration: 8 * 60_000 })
    const session = await world.opened()
    for (const minutes of [2, 2, 3]) {
      world.clock.now += minutes * 60_000
      await world.gate.review()
    }
    expect(notices).toMatchObject([{ type: 'tell', session: session.id, text: /ends in 4 min/ }])
    world.clock.now += 60_000
    await world.gate.review()
    expect(notices.at(-1)).toMatchObject({ type: 'stop', reason: 'the time of the approval is over' })
    expect(await events('session.kill')).toHaveLength(1)
  })

  test('that nobody answers expires, and the client is told', async () => {
    await conditions({ approvalTimeout: 60 })
    const identity = await world.signIn()
    waitOf(await world.open({ identity }))
    world.clock.now += 59_000
    await world.gate.review()
    expect(states()).toEqual([])
    world.clock.now += 1_000
    await world.gate.review()
    expect(states()).toEqual(['expired: nobody has answered in time'])
    expect(await events('approval.end')).toMatchObject([{ result: 'expired', holder: 'ops1' }])
  })

  test('of an authorization that is gone opens nothing, and its sessions end', async () => {
    const made = await asked()
    await answer(made!.id)
    await world.opened()
    await store.authorizations.remove(world.estate.authorization.id)
    await world.gate.review()
    expect(notices.map(({ type }) => type)).toEqual(['stop'])
    expect(await world.open()).toMatchObject({ result: 'denied' })
  })

  test('is needed from now on: a session without one ends; one that has it goes on when none is needed', async () => {
    await conditions({ approvalRequired: false })
    const session = await world.opened()
    await conditions({ approvalRequired: true })
    await world.gate.review()
    expect(notices).toMatchObject([{ type: 'stop', session: session.id, reason: /need an approval/ }])
    const made = await asked()
    await answer(made!.id)
    await world.opened()
    await conditions({ approvalRequired: false })
    await world.gate.review()
    expect(notices).toHaveLength(1)
  })

  test('is not asked for where another authorization opens the target without one', async () => {
    const { estate } = world
    const group = await store.userGroups.create({
      groupName: 'oncall',
      description: '',
      userIds: [estate.user.id],
    })
    const { id: _id, conditions: _none, ...same } = estate.authorization
    await store.authorizations.create({ ...same, userGroupId: group.id, subprotocols: ['VNC'] })
    const session = await world.opened()
    expect(session.rights).toEqual(['VNC'])
  })
})

describe('outside of the timeframes', () => {
  beforeEach(async () => {
    // Holds in no second that a test has.
    const never = {
      startDate: '2000-01-01',
      endDate: '2000-01-02',
      startTime: '00:00',
      endTime: '24:00',
      weekDays: [],
    }
    const { id } = await store.timeframes.create({
      timeframeName: 'never',
      description: '',
      isOvertimable: false,
      timeZone: 'UTC',
      periods: [never],
      isFactory: false,
    })
    await store.userGroups.update(world.estate.userGroup.id, { timeframeIds: [id] })
  })

  test('nothing opens without a quorum for it, and no approval is asked for', async () => {
    expect(await world.open()).toMatchObject({ result: 'denied', message: /does not exist, or you may not/ })
    await conditions({ approvalRequired: false, inactiveQuorum: 1 })
    expect(await world.open()).toMatchObject({ result: 'denied' })
    expect(await store.approvals.pending()).toBe(0)
  })

  test('as many have to agree as it says; the session goes on for the time of its approval', async () => {
    await conditions({ inactiveQuorum: 2 })
    const identity = await world.signIn()
    const { approval } = waitOf(await world.open({ identity }))
    expect(await store.approvals.find(approval)).toMatchObject({ quorum: 2 })
    await answer(approval)
    await answer(approval, true, [chiefs[1]!])
    const opened = await world.open({ identity, approval })
    expect(opened).toMatchObject({ result: 'opened' })
    await store.users.update(world.estate.user.id, { displayName: 'touched' })
    await world.gate.review()
    expect(notices.filter(({ type }) => type !== 'approval')).toEqual([])
    world.clock.now += HOUR
    await world.gate.review()
    expect(notices.at(-1)).toMatchObject({ type: 'stop', reason: 'the time of the approval is over' })
  })
})

describe('an answer', () => {
  test('by the requester never counts, whatever groups the requester is in', async () => {
    const { user } = world.estate
    const [group] = await store.userGroups
      .list()
      .then(({ items }) => items.filter((one) => one.groupName === 'chiefs'))
    await store.users.update(user.id, { profile: 'approver', groupIds: [...user.groupIds, group!.id] })
    const { approval } = waitOf(await world.open())
    expect(await answer(approval, true, [user])).toBe('own_request')
    expect(await answer(approval, false, [user])).toBe('own_request')
    expect(await store.approvals.find(approval)).toMatchObject({ state: 'pending', answers: [] })
  })

  test('counts once: through two groups, twice, and at the same moment', async () => {
    const [chief] = chiefs
    const second = await store.userGroups.create({
      groupName: 'heads',
      description: '',
      userIds: [chief!.id],
    })
    const old = await store.authorizations.find(world.estate.authorization.id)
    await conditions({
      activeQuorum: 2,
      approverGroupIds: [...old!.conditions!.approverGroupIds, second.id].sort(),
    })
    const { approval } = waitOf(await world.open())
    const results = await Promise.all([answer(approval), answer(approval), answer(approval)])
    expect(results.filter((one) => one === 'answered_already')).toHaveLength(2)
    expect(await answer(approval, false)).toBe('answered_already')
    expect(await store.approvals.find(approval)).toMatchObject({
      state: 'pending',
      answers: [{ userName: 'chief1' }],
    })
    // Of those beyond the quorum, at the same moment, none counts.
    const others = await Promise.all([
      answer(approval, true, [chiefs[1]!]),
      answer(approval, false, [chiefs[2]!]),
    ])
    expect(others.filter((one) => one === 'not_pending')).toHaveLength(1)
  })

  test('does not count for an approver that has lost the right meanwhile; one given before stays', async () => {
    await conditions({ activeQuorum: 2 })
    const { approval } = waitOf(await world.open())
    await answer(approval)
    await store.users.update(chiefs[0]!.id, { groupIds: [] })
    const lost: [string, (id: string) => Promise<unknown>][] = [
      ['disabled', (id) => store.users.update(id, { isDisabled: true })],
      ['locked', (id) => store.users.update(id, { isDisabled: false, isLocked: true })],
      ['without the profile', (id) => store.users.update(id, { profile: 'user', isLocked: false })],
      ['out of the group', (id) => store.users.update(id, { profile: 'approver', groupIds: [] })],
    ]
    for (const [why, lose] of lost) {
      await lose(chiefs[1]!.id)
      expect(await answer(approval, true, [chiefs[1]!]), why).toBe('not_found')
    }
    expect(await answer(approval, true, [chiefs[2]!])).toMatchObject({ state: 'accepted' })
  })

  test('that races with a loss of the right is judged in its transaction', async () => {
    const { approval } = waitOf(await world.open())
    const [chief] = chiefs
    // Between the event and the row.
    const whole = {
      userId: chief!.id,
      userName: 'chief1',
      approved: true,
      comment: '',
      time: world.clock.now,
      apiKey: '',
    }
    await store.users.update(chief!.id, { isDisabled: true })
    expect(await store.approvals.answer(approval, whole)).toBe('not_found')
    expect(await store.approvals.find(approval)).toMatchObject({ state: 'pending', answers: [] })
  })

  test('races with a cancellation: one of them holds', async () => {
    for (let turns = 0; turns < 8; turns++) {
      const made = await asked({ begin: world.clock.now + turns * HOUR })
      const [given, cancelled] = await Promise.all([answer(made!.id), revoke(made!.id)])
      const after = await store.approvals.find(made!.id)
      // An acceptance may be followed by the revocation, never the other way.
      expect(after?.state).toBe('cancelled')
      expect(typeof cancelled).toBe('object')
      if (typeof given === 'string') expect(given).toBe('not_pending')
    }
  })
})

test('five thousand clients that wait cost nothing while nothing changes, and each is told its own', async () => {
  const made = await asked()
  const { id: _id, ...same } = made!
  const ids = await store.transaction(async (inner) => {
    const all: string[] = []
    for (let at = 0; at < 5_000; at++)
      all.push((await inner.approvals.create({ ...same }, { ofUser: 10_000, all: 10_000 }))!.id)
    return all
  })
  const told: GateNotice[] = []
  const read: string[] = []
  const waits = new Waits({
    approvals: world.gate.approvals,
    store: {
      some: (some) => {
        read.push(...some)
        return store.approvals.some(some)
      },
      find: async (id) => ({ ...made!, id }),
    },
    notify: (notice) => told.push(notice),
    now: () => world.clock.now,
  })
  for (const id of ids) waits.add({ ...made!, id }, `token of ${id}`)
  await new Promise((resolve) => setImmediate(resolve))
  const nothing = new Touched()
  const before = processorTime()
  for (let second = 0; second < 1_000; second++) {
    await waits.tick()
    await waits.review(nothing)
  }
  expect(processorTime() - before).toBeLessThan(200)
  expect(read).toEqual([])
  const [, , one = ''] = ids
  await answer(one)
  const touched = new Touched()
  touched.add({ kind: 'approval', object: one })
  await waits.review(touched)
  expect(read).toEqual([one])
  expect(told).toMatchObject([{ identity: `token of ${one}`, state: 'accepted' }])
})

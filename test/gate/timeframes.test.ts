/** Timeframes of user groups, and the ends of sessions by them. */
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest'
import type { GateNotice } from '../../src/contract/gate.ts'
import type { Id } from '../../src/model/objects.ts'
import type { Timeframe } from '../../src/model/timeframes.ts'
import type { Store } from '../../src/store/store.ts'
import { Checkouts } from '../../src/vault/checkout.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

const at = (time: string) => Date.parse(`2026-11-23T${time}:00Z`)
const OVER = 'the timeframe of the authorization is over'

let world: VncWorld
let store: Store
let day: Id
let notices: GateNotice[]
let checkouts: Checkouts
beforeEach(async () => {
  world = await vncWorld()
  store = world.temporary.store
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
  checkouts = new Checkouts(store, world.vault, world.gate)
  world.clock.now = at('09:00')
  day = await timeframe({})
  await store.userGroups.update(world.estate.userGroup.id, { timeframeIds: [day] })
})
afterEach(() => world.temporary.remove())

async function timeframe(more: Partial<Timeframe>): Promise<Id> {
  const made = await store.timeframes.create({
    timeframeName: `day ${JSON.stringify(more)}`,
    description: '',
    isOvertimable: false,
    timeZone: 'UTC',
    periods: [{ startTime: '08:00', endTime: '18:00', weekDays: [] }],
    isFactory: false,
    ...more,
  })
  return made.id
}

/** Moves the clock, and reviews what runs. Returns the notices since. */
async function reviewedAt(time: string): Promise<GateNotice[]> {
  world.clock.now = at(time)
  await world.gate.review()
  return notices.splice(0)
}

const checkout = () => checkouts.checkout(world.estate.user, world.estate.account, () => world.clock.now)

describe('out of its timeframe', () => {
  it('nothing of a group is there, as if it did not exist, and only the audit says why', async () => {
    world.clock.now = at('18:00')
    const identity = await world.signIn()
    expect(await world.gate.targets({ identity, protocol: 'VNC' })).toEqual({ targets: [], total: 0 })
    const { id } = world.estate.user
    expect(await store.access.withTargets([id], world.clock.now)).toEqual(new Set())
    expect(await store.access.withTargets([id], at('17:59'))).toEqual(new Set([id]))
    const denied = { result: 'denied', message: expect.stringContaining('does not exist, or you may not') }
    expect(await world.open({ identity })).toEqual(denied)
    const reason = expect.stringContaining('outside the timeframes of the authorization')
    expect((await world.events()).at(-1)).toEqual(['session.denied', expect.objectContaining({ reason })])
    const target = 'root@local:srv1:vnc'
    const asked = {
      user: world.estate.user,
      basis: world.basis(),
      target,
      protocol: 'VNC',
      address: '192.0.2.7',
    } as const
    expect((await world.gate.tickets.issue(asked)).result).toBe('unknown')
    await expect(checkout()).rejects.toMatchObject({ reason: 'not_allowed' })
    const filter = { device: 'srv1', isOutside: true } as const
    expect(await store.access.sessionTargets(id, world.clock.now, filter)).toHaveLength(1)
    expect(await store.access.sessionTargets(id, at('09:00'), filter)).toEqual([])
  })

  it('another group still gives the same', async () => {
    const { userGroup: _group, user, targetGroup, authorization } = world.estate
    const other = await store.userGroups.create({
      groupName: 'always',
      description: '',
      userIds: [user.id],
    })
    const { id: _id, ...same } = authorization
    await store.authorizations.create({
      ...same,
      userGroupId: other.id,
      targetGroupId: targetGroup.id,
      subprotocols: ['VNC'],
    })
    world.clock.now = at('19:00')
    expect((await world.opened()).rights).toEqual(['VNC'])
    expect(await reviewedAt('20:00')).toEqual([])
    // One with a right that only the day gives ends with the day.
    world.clock.now = at('09:00')
    await world.gate.review()
    const { id } = await world.opened()
    expect(await reviewedAt('18:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
  })
})

describe('a session', () => {
  it('is warned five minutes and a minute before its timeframe ends, and ends with it', async () => {
    const { id } = await world.opened()
    expect(await reviewedAt('17:54')).toEqual([])
    const tell = (text: string) => ({ type: 'tell', session: id, text })
    const ends = 'its timeframe is over then'
    expect(await reviewedAt('17:55')).toEqual([tell(`this session ends in 5 minutes: ${ends}`)])
    await store.devices.update(world.estate.device.id, { description: 'web 2' })
    expect(await reviewedAt('17:57')).toEqual([])
    expect(await reviewedAt('17:59')).toEqual([tell(`this session ends in a minute: ${ends}`)])
    expect(await reviewedAt('18:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
    const kill = expect.objectContaining({ session: id, reason: OVER })
    expect((await world.events()).at(-1)).toEqual(['session.kill', kill])
  })

  it('does not survive the end by a jump of the clock, forward or back', async () => {
    const first = await world.opened()
    expect(await reviewedAt('23:30')).toEqual([{ type: 'stop', session: first.id, reason: OVER }])
    world.clock.now = at('09:00')
    await world.gate.review()
    const second = await world.opened()
    notices.splice(0)
    const stops = (await reviewedAt('07:59')).filter(({ type }) => type === 'stop')
    expect(stops).toContainEqual({ type: 'stop', session: second.id, reason: OVER })
  })

  it('goes on in overtime, until that is taken back', async () => {
    await store.timeframes.update(day, { isOvertimable: true })
    const { id } = await world.opened()
    expect(await reviewedAt('17:58')).toEqual([])
    expect(await reviewedAt('22:00')).toEqual([])
    expect((await world.open()).result).toBe('denied')
    await store.timeframes.update(day, { isOvertimable: false })
    expect(await reviewedAt('22:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
  })

  it('goes on in overtime with its connection when something else is changed', async () => {
    await store.timeframes.update(day, { isOvertimable: true })
    await world.gate.review()
    const identity = await world.signIn('ops1')
    expect((await world.gate.targets({ identity, protocol: 'VNC' })).total).toBe(1)
    expect(await world.open({ identity, target: 'root@local:srv1:vnc' })).toMatchObject({ result: 'opened' })
    await reviewedAt('09:01')
    expect(await reviewedAt('22:00')).toEqual([])
    await store.devices.update(world.estate.device.id, { description: 'web 2' })
    expect(await reviewedAt('22:00')).toEqual([])
  })

  it('goes on while timeframes meet, and follows a change of the group at once', async () => {
    const evening = await timeframe({
      periods: [{ startTime: '18:00', endTime: '02:00', weekDays: ['monday'] }],
    })
    const { userGroup } = world.estate
    await store.userGroups.update(userGroup.id, { timeframeIds: [day, evening] })
    const { id } = await world.opened()
    expect(await reviewedAt('17:58')).toEqual([])
    expect(await reviewedAt('19:00')).toEqual([])
    await store.userGroups.update(userGroup.id, { timeframeIds: [day] })
    expect(await reviewedAt('19:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
  })

  it('ends by what was known while the database is away', async () => {
    const { id } = await world.opened()
    await world.gate.review()
    const { reach } = store
    store.reach = { ...reach, away: { since: 0 } as never }
    expect(await reviewedAt('17:59')).toHaveLength(1)
    expect(await reviewedAt('18:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
    store.reach = reach
  })

  it('ends while the database is away, though it went away in the round of the end', async () => {
    const { id } = await world.opened()
    await world.gate.review()
    const { reach } = store
    const { grants } = store.access
    store.access.grants = async () => {
      throw new Error('gone')
    }
    world.clock.now = at('18:00')
    await expect(world.gate.review()).rejects.toThrow('gone')
    notices.splice(0)
    store.reach = { ...reach, away: { since: 0 } as never }
    expect(await reviewedAt('18:01')).toEqual([{ type: 'stop', session: id, reason: OVER }])
    store.reach = reach
    store.access.grants = grants
  })

  it('follows a timeframe that another process changes', async () => {
    const { id } = await world.opened()
    await world.gate.review()
    const other = await world.temporary.open()
    await other.timeframes.update(day, {
      periods: [{ startTime: '08:00', endTime: '08:30', weekDays: [] }],
    })
    await other.close()
    expect(await reviewedAt('09:00')).toEqual([{ type: 'stop', session: id, reason: OVER }])
  })
})

describe('a menu', () => {
  /** Gives the user a second target, at all times. */
  async function always(): Promise<void> {
    const { device, account, user, authorization } = world.estate
    const found = await store.services.find(world.service)
    const { id: _service, ...same } = found!
    const other = await store.services.create({ ...same, serviceName: 'vnc-always', deviceId: device.id })
    const userGroup = await store.userGroups.create({
      groupName: 'always',
      description: '',
      userIds: [user.id],
    })
    const targetGroup = await store.targetGroups.create({
      ...world.estate.targetGroup,
      groupName: 'always',
      sessionAccounts: [{ accountId: account.id, serviceId: other.id }],
    })
    const { id: _id, ...rights } = authorization
    await store.authorizations.create({
      ...rights,
      subprotocols: ['VNC'],
      userGroupId: userGroup.id,
      targetGroupId: targetGroup.id,
    })
  }
  const shown = async (identity: string) => (await world.gate.targets({ identity, protocol: 'VNC' })).total
  const text = 'your targets have changed: a timeframe or a right has ended'

  it('is shown anew when a timeframe of its targets ends, for all that show it', async () => {
    await always()
    const [first, second, opening] = [await world.signIn(), await world.signIn(), await world.signIn()]
    for (const identity of [first, second, opening]) expect(await shown(identity)).toBe(2)
    const opened = await world.open({ identity: opening, target: 'root@local:srv1:vnc-always' })
    expect(opened.result).toBe('opened')
    await reviewedAt('09:01')
    expect(await reviewedAt('17:59')).toEqual([])
    const anew = (identity: string) => ({ type: 'targets', identity, text })
    expect(await reviewedAt('18:00')).toEqual([anew(first), anew(second)])
    expect(await shown(first)).toBe(1)
    expect(await reviewedAt('18:01')).toEqual([])
    expect(await world.open({ identity: first, target: 'root@local:srv1:vnc' })).toMatchObject({
      result: 'denied',
    })
  })

  it('is shown anew when a timeframe is changed, or the clock is set back before it', async () => {
    await always()
    const identity = await world.signIn()
    for (const change of [
      () =>
        store.timeframes.update(day, { periods: [{ startTime: '10:00', endTime: '18:00', weekDays: [] }] }),
      async () => {
        world.clock.now = at('07:00')
      },
    ]) {
      await store.timeframes.update(day, {
        periods: [{ startTime: '08:00', endTime: '18:00', weekDays: [] }],
      })
      world.clock.now = at('09:00')
      await world.gate.review()
      expect(await shown(identity)).toBe(2)
      notices.splice(0)
      await change()
      await world.gate.review()
      expect(notices.splice(0)).toEqual([{ type: 'targets', identity, text }])
    }
  })

  it('of which nothing is left ends with its sign-in', async () => {
    const identity = await world.signIn()
    expect(await shown(identity)).toBe(1)
    await reviewedAt('17:59')
    const reason = 'nothing is left that you may open'
    expect(await reviewedAt('18:00')).toEqual([{ type: 'leave', identity, reason }])
    const withdrawn = ['auth.withdraw', expect.objectContaining({ user: 'ops1', reason })]
    expect((await world.events()).at(-1)).toEqual(withdrawn)
  })
})

test('a user that an administrator locks loses what runs, and cannot sign in', async () => {
  const { id } = await world.opened()
  await store.users.update(world.estate.user.id, { isLocked: true })
  expect(await reviewedAt('09:00')).toContainEqual({
    type: 'stop',
    session: id,
    reason: 'the user is locked',
  })
  await expect(world.signIn()).rejects.toThrow('rejected')
  await store.users.update(world.estate.user.id, { isLocked: false })
  await world.signIn()
})

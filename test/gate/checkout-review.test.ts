/** Checkouts whose users lose what they rest on, and those that expire. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CheckoutExpiry } from '../../src/broker/checkout-expiry.ts'
import type { GateNotice } from '../../src/contract/gate.ts'
import type { ApiKey, Id } from '../../src/model/objects.ts'
import { NOTHING } from '../../src/model/profiles.ts'
import { Secret } from '../../src/model/secret.ts'
import type { Timeframe } from '../../src/model/timeframes.ts'
import type { Store } from '../../src/store/store.ts'
import { Checkouts } from '../../src/vault/checkout.ts'
import { type VncWorld, vncWorld } from './desktop-world.ts'

const MINUTE = 60_000
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

/** Ends what has expired then. Returns the fields of the events. */
async function expiredAt(time: string): Promise<Record<string, unknown>[]> {
  const told: Record<string, unknown>[] = []
  const record = async (_code: string, fields: object = {}) => void told.push({ ...fields })
  await new CheckoutExpiry({ store, audit: { record } as never, now: () => at(time) }).run()
  return told
}

const checkout = () => checkouts.checkout(world.estate.user, world.estate.account, () => world.clock.now)

describe('a checkout', () => {
  it('whose user is disabled, or loses the right, while it is stored hands nothing out', async () => {
    const { user } = world.estate
    const { create } = store.checkouts
    for (const [lost, back] of [
      [{ isDisabled: true }, { isDisabled: false }],
      [{ groupIds: [] }, { groupIds: user.groupIds }],
    ]) {
      store.checkouts.create = async (...given) => {
        await store.users.update(user.id, lost!)
        await world.gate.review()
        return await create(...given)
      }
      const out = await checkout()
      expect(await checkouts.mayHandOut(out, world.clock.now)).toBe(false)
      await checkouts.undo(user, world.estate.account, out, world.clock.now)
      await store.users.update(user.id, back!)
    }
    store.checkouts.create = create
    expect(await checkouts.mayHandOut(await checkout(), world.clock.now)).toBe(true)
  })

  it('expires no later than the timeframe, nor is it extended beyond', async () => {
    await store.checkoutPolicies.update('00000000000000000000000201', { extension: 600 })
    world.clock.now = at('17:30')
    const { checkoutId, expires } = await checkout()
    expect(expires).toBe(at('18:00'))
    const out = (await store.checkouts.find(checkoutId))!
    await expect(checkouts.extendedEnd(out, world.clock.now)).rejects.toMatchObject({
      reason: 'not_extendable',
    })
    expect(await expiredAt('17:59')).toEqual([])
    expect(await expiredAt('18:00')).toEqual([expect.objectContaining({ object: checkoutId, reason: OVER })])
    await store.timeframes.update(day, { isOvertimable: true })
    expect((await checkout()).expires).toBe(at('18:30'))
  })

  it('ends at the new end of its timeframe, though it is extended at the same moment', async () => {
    await store.checkoutPolicies.update('00000000000000000000000201', {
      duration: 600,
      extension: 1200,
      maxDuration: 3600,
    })
    const { amongRights } = store
    const until = (time: string) =>
      store.timeframes.update(day, { periods: [{ startTime: '08:00', endTime: time, weekDays: [] }] })
    let changed: Promise<unknown> = Promise.resolve()
    /** When the change comes: before the look that is stored with the extension, or while that look is on its way. */
    const moments = {
      before: async () => {
        await until('09:15')
        await world.gate.review()
      },
      meanwhile: async () => {
        changed = until('09:15').then(() => world.gate.review())
      },
    }
    for (const [moment, come] of Object.entries(moments)) {
      await until('18:00')
      await world.gate.review()
      const { checkoutId } = await checkout()
      const out = (await store.checkouts.find(checkoutId))!
      const end = await checkouts.extendedEnd(out, world.clock.now)
      expect(end).toBe(at('09:30'))
      if (moment === 'before') await come()
      else
        store.amongRights = (work) =>
          amongRights(async (inner) => {
            await come()
            return await work(inner)
          })
      const extended = checkouts
        .extend(out, end, () => world.clock.now)
        .then(
          () => 'extended',
          (error: Error) => error.name,
        )
      expect(await extended).toBe(moment === 'before' ? 'ChangedError' : 'extended')
      store.amongRights = amongRights
      await changed
      expect((await store.checkouts.find(checkoutId))?.expires).toBe(
        at(moment === 'before' ? '09:10' : '09:15'),
      )
    }
  })

  it('is not shortened by a look that is older than a change', async () => {
    const { checkoutId } = await checkout()
    const { amongRights } = store
    const until = (endTime: string) =>
      store.timeframes.update(day, { periods: [{ startTime: '08:00', endTime, weekDays: [] }] })
    await until('09:30')
    store.amongRights = async (work) => {
      await until('18:00')
      return await amongRights(work)
    }
    await world.gate.review()
    expect((await store.checkouts.find(checkoutId))?.expires).toBe(at('10:00'))
  })

  it('is handed out for no longer than a timeframe that is moved while it is stored', async () => {
    const { create } = store.checkouts
    store.checkouts.create = async (...given) => {
      await store.timeframes.update(day, {
        periods: [{ startTime: '08:00', endTime: '09:30', weekDays: [] }],
      })
      await world.gate.review()
      return await create(...given)
    }
    const out = await checkout()
    store.checkouts.create = create
    expect(await checkouts.mayHandOut(out, world.clock.now)).toBe(false)
  })

  it('of any number that has expired ends in one run, though one event cannot be written', async () => {
    const { user, account } = world.estate
    const begun = { accountId: account.id, userId: user.id, begin: at('09:00') }
    for (let number = 0; number < 150; number++)
      await store.checkouts.create({ ...begun, expires: at('09:10') + (number >> 5) }, false)
    const [broken] = await store.checkouts.expired(at('09:30'), 1)
    let together = 0
    let most = 0
    const record = async (_code: string, { object }: { object?: string } = {}) => {
      most = Math.max(most, ++together)
      await new Promise(setImmediate)
      together--
      if (object === broken?.id) throw new Error('no audit')
    }
    const expiry = new CheckoutExpiry({ store, audit: { record } as never, now: () => at('09:30') })
    const runs = [expiry.run(), expiry.run()]
    for (const run of runs) await expect(run).rejects.toThrow('no audit')
    expect((await store.checkouts.expired(at('09:30'), 100)).map(({ id }) => id)).toEqual([broken?.id])
    expect(most).toBeLessThanOrEqual(64)
  })

  const LOSSES: [string, () => Promise<unknown>, reason: string][] = [
    ['its user is disabled', () => ofUser({ isDisabled: true }), 'the user is disabled'],
    ['its user is locked', () => ofUser({ isLocked: true }), 'the user is locked'],
    [
      'its user leaves the group',
      () => ofUser({ groupIds: [] }),
      'the authorization for this account is gone',
    ],
    [
      'the authorization is changed',
      () => store.authorizations.update(world.estate.authorization.id, { authorizePasswordRetrieval: false }),
      'the authorization for this account is gone',
    ],
    [
      'the account leaves the target group',
      () => store.targetGroups.update(world.estate.targetGroup.id, { sessionAccounts: [] }),
      'the authorization for this account is gone',
    ],
    [
      'the timeframe ends sooner',
      () =>
        store.timeframes.update(day, { periods: [{ startTime: '08:00', endTime: '09:00', weekDays: [] }] }),
      OVER,
    ],
    [
      'the clock is set back before the timeframe',
      async () => {
        world.clock.now = at('07:00')
      },
      OVER,
    ],
  ]
  const ofUser = (change: object) => store.users.update(world.estate.user.id, change)
  it.each(LOSSES)('ends when %s', async (_what, lose, reason) => {
    await world.gate.review()
    const { checkoutId } = await checkout()
    await lose()
    await world.gate.review()
    const { now } = world.clock
    expect(await checkouts.out(checkoutId, now)).toBeUndefined()
    expect(await store.checkouts.find(checkoutId)).toMatchObject({ end: now })
    const ended = (await world.events()).filter(([code]) => code === 'checkout.expired')
    const fields = { user: 'ops1', account: 'root', device: 'srv1', object: checkoutId, reason }
    expect(ended).toEqual([['checkout.expired', expect.objectContaining(fields)]])
  })

  it('is shortened by a timeframe or a user that ends sooner, and left alone otherwise', async () => {
    const { checkoutId } = await checkout()
    const expires = async () => (await store.checkouts.find(checkoutId))?.expires
    await store.timeframes.update(day, {
      periods: [{ startTime: '08:00', endTime: '09:30', weekDays: [] }],
    })
    await world.gate.review()
    expect(await expires()).toBe(at('09:30'))
    await ofUser({ expirationDate: at('09:15') })
    await world.gate.review()
    expect(await expires()).toBe(at('09:15'))
    await ofUser({ expirationDate: undefined })
    await world.gate.review()
    expect(await expires()).toBe(at('09:15'))
  })

  it('that expires with its user says so, and one whose duration is over says nothing', async () => {
    const first = await checkout()
    await ofUser({ expirationDate: at('09:30') })
    const user = (await store.users.find(world.estate.user.id))!
    const second = await checkouts.checkout(user, world.estate.account, () => world.clock.now)
    expect(second.expires).toBe(at('09:30'))
    const [told] = await expiredAt('09:30')
    expect(told).toMatchObject({ object: second.checkoutId, reason: 'the user has expired' })
    await ofUser({ expirationDate: undefined, isDisabled: true })
    const [later] = await expiredAt('10:00')
    expect(later).toMatchObject({ object: first.checkoutId })
    expect(later).not.toHaveProperty('reason')
  })

  it('of an API key ends with the key, and with its right to act for the user', async () => {
    const key = (more: object = {}) =>
      store.apiKeys.create({
        keyName: `ci ${JSON.stringify(more)}`,
        profile: 'product_administrator',
        ipSource: [],
        createdAt: 0,
        ...more,
      })
    const { user, account } = world.estate
    const outBy = async (apiKey: ApiKey) =>
      (await checkouts.checkout(user, account, () => world.clock.now, { apiKey })).checkoutId
    const removed = await key()
    const restricted = await key({ actsFor: { userIds: [user.id], groupIds: [] } })
    const weaker = await key({ description: 'weaker' })
    const kept = await key({ expirationDate: at('09:40') })
    const ids = [await outBy(removed), await outBy(restricted), await outBy(weaker), await outBy(kept)]
    expect((await store.checkouts.find(ids[3]!))?.expires).toBe(at('09:40'))
    await world.gate.review()
    await store.apiKeys.remove(removed.id)
    await store.apiKeys.update(restricted.id, { actsFor: { userIds: [], groupIds: [] } })
    await store.profiles.create({
      profileName: 'nothing',
      description: '',
      rights: NOTHING,
      isFactory: false,
    })
    await store.apiKeys.update(weaker.id, { profile: 'nothing' })
    await store.apiKeys.update(kept.id, { expirationDate: at('09:20') })
    await world.gate.review()
    const ended = (await world.events()).filter(([code]) => code === 'checkout.expired')
    expect(ended.map(([, { object, reason }]) => [object, reason])).toEqual([
      [ids[0], 'the API key was removed'],
      [ids[1], 'the API key may not act for the user any more'],
      [ids[2], 'the right "checkout: execute" was taken away'],
    ])
    expect((await store.checkouts.find(ids[3]!))?.expires).toBe(at('09:20'))
    expect(await expiredAt('09:20')).toMatchObject([{ object: ids[3], reason: 'the API key has expired' }])
  })

  it('of a secret that an administrator replaces ends, and is followed by no further change', async () => {
    const { checkoutId } = await checkout()
    const { id } = world.estate.account
    await world.gate.review()
    const password = () => [{ type: 'password', password: Secret.of('other') }] as const
    await world.vault.setCredentials(id, password(), { time: world.clock.now, severs: false })
    await world.gate.review()
    expect(await checkouts.out(checkoutId, world.clock.now)).toBeDefined()
    await world.vault.setCredentials(id, password(), { time: world.clock.now, severs: true })
    await world.gate.review()
    expect(await checkouts.out(checkoutId, world.clock.now)).toBeUndefined()
    const ended = (await world.events()).filter(([code]) => code === 'checkout.expired')
    const reason = 'the secret of the account was changed'
    expect(ended).toEqual([['checkout.expired', expect.objectContaining({ object: checkoutId, reason })]])
    const next = await checkout()
    await world.gate.review()
    expect(await checkouts.out(next.checkoutId, world.clock.now)).toBeDefined()
  })

  it('goes on in the overtime of one group, whatever other groups there are, as its sessions do', async () => {
    await store.timeframes.update(day, { isOvertimable: true })
    const late = await timeframe({
      periods: [{ startTime: '09:00', endTime: '20:00', weekDays: [] }],
    })
    const { user, targetGroup, authorization } = world.estate
    const other = await store.userGroups.create({
      groupName: 'late',
      description: '',
      userIds: [user.id],
      timeframeIds: [late],
    })
    const { id: _id, ...same } = authorization
    await store.authorizations.create({ ...same, userGroupId: other.id, targetGroupId: targetGroup.id })
    await store.checkoutPolicies.update('00000000000000000000000201', { maxDuration: 24 * 3600 })
    const { checkoutId } = await checkout()
    const session = await world.opened()
    expect((await store.checkouts.find(checkoutId))?.expires).toBe(at('09:00') + 24 * 60 * MINUTE)
    await store.devices.update(world.estate.device.id, { description: 'web 2' })
    expect((await reviewedAt('21:00')).filter(({ type }) => type === 'stop')).toEqual([])
    expect(await checkouts.out(checkoutId, world.clock.now)).toBeDefined()
    await store.timeframes.update(day, { isOvertimable: false })
    expect(await reviewedAt('21:00')).toEqual([{ type: 'stop', session: session.id, reason: OVER }])
    expect(await checkouts.out(checkoutId, world.clock.now)).toBeUndefined()
  })

  it('of another user stays', async () => {
    const { checkoutId } = await checkout()
    const other = await store.users.create({ ...world.estate.user, userName: 'other', groupIds: [] })
    await store.users.update(other.id, { isDisabled: true })
    await world.gate.review()
    expect(await checkouts.out(checkoutId, world.clock.now + MINUTE)).toBeDefined()
  })
})

/** Schedules of policies: which runs they make, by a clock of the test. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { PasswordChangePolicy } from '../../src/model/password-change.ts'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../../src/model/password-change.ts'
import { Rotation } from '../../src/rotation/rotation.ts'
import { runSchedules } from '../../src/rotation/schedule.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { until } from '../until.ts'
import { FakeTarget, type RotationWorld, rotationWorld } from './fixture.ts'

const HOUR = 3_600_000
const DAY = 24 * HOUR
/** Midnight in UTC. */
const BEGIN = Date.UTC(2026, 5, 1)

let temp: TemporaryStore
let world: RotationWorld
let policy: PasswordChangePolicy
beforeEach(async () => {
  temp = await temporaryStore()
  world = await rotationWorld({ temp, withoutAdmin: true })
  const standard = await temp.store.passwordChangePolicies.find(DEFAULT_PASSWORD_CHANGE_POLICY)
  policy = await temp.store.passwordChangePolicies.create({
    ...standard!,
    policyName: `policy of ${world.domain.domainName}`,
  })
  await enable(true)
})

afterEach(() => temp.remove())

const enable = (isEnabled: boolean) =>
  temp.store.domains.update(world.domain.id, {
    change: { ...world.domain.change!, policyId: policy.id, isEnabled },
  })
const periods = (change: Partial<PasswordChangePolicy>) =>
  temp.store.passwordChangePolicies.update(policy.id, change)
const look = (now: number) => runSchedules(temp.store, now)
const asked = async () => (await temp.store.secretJobs.list(world.account.id)).items.map(({ kind }) => kind)

it('make a run when the time has come, and one for several that were missed', async () => {
  await periods({ changePeriod: '30 2 * * *', checkPeriod: '0 4 * * *' })
  await look(BEGIN)
  await look(BEGIN + 2 * HOUR)
  expect(await asked()).toEqual([])
  await look(BEGIN + 2.5 * HOUR)
  expect(await asked()).toEqual(['change'])
  await look(BEGIN + 3 * DAY)
  expect((await asked()).sort()).toEqual(['change', 'check'])
  expect(await temp.store.secretJobs.schedules(BEGIN + 3 * DAY, 10)).toEqual([])
})

it('are in the time zone of their policy', async () => {
  await periods({ checkPeriod: '0 4 * * *', timeZone: 'America/New_York' })
  await look(BEGIN)
  await look(BEGIN + 7.9 * HOUR)
  expect(await asked()).toEqual([])
  await look(BEGIN + 8 * HOUR)
  expect(await asked()).toEqual(['check'])
})

it('make no run for a time before they were set, changed or enabled again', async () => {
  await look(BEGIN)
  await look(BEGIN + 40 * DAY)
  await periods({ changePeriod: '0 12 * * *' })
  await look(BEGIN + 40 * DAY)
  expect(await asked()).toEqual([])
  await look(BEGIN + 40 * DAY + 6 * HOUR)
  // Another expression, with its time of today in the past.
  await periods({ changePeriod: '0 5 * * *' })
  await look(BEGIN + 40 * DAY + 13 * HOUR)
  await periods({ timeZone: 'Asia/Tokyo' })
  await look(BEGIN + 41 * DAY + 6 * HOUR)
  await enable(false)
  await look(BEGIN + 42 * DAY)
  await enable(true)
  await look(BEGIN + 50 * DAY)
  expect(await asked()).toEqual([])
  await look(BEGIN + 51 * DAY)
  expect(await asked()).toEqual(['change'])
})

it('go on after a clock that was set back', async () => {
  await periods({ changePeriod: '0 12 * * *' })
  await look(BEGIN + 1_000 * DAY)
  await look(BEGIN)
  await look(BEGIN + 12 * HOUR)
  expect(await asked()).toEqual(['change'])
})

it('leave accounts out that are not changed by schedules, and check them all the same', async () => {
  await temp.store.accounts.update(world.account.id, { isKept: true })
  await periods({ changePeriod: '0 12 * * *', checkPeriod: '0 12 * * *' })
  await look(BEGIN)
  await look(BEGIN + DAY)
  expect(await asked()).toEqual(['check'])
})

it('are looked at by a broker that runs', async () => {
  await periods({ changePeriod: '30 2 * * *' })
  let now = BEGIN
  const target = new FakeTarget()
  const rotation = new Rotation({
    ...{ store: temp.store, vault: world.vault, changer: target },
    audit: { record: async () => undefined as never },
    claim: () => () => undefined,
    now: () => now,
    onError: (error) => {
      throw error
    },
    lookMs: 5,
  })
  await rotation.start()
  expect(target.passwords.get('svc')).toBe('first')
  now += DAY
  await until('the change', async () => (await world.stored()) !== 'first' || undefined)
  await rotation.stop()
  expect(target.passwords.get('svc')).toBe(await world.stored())
})

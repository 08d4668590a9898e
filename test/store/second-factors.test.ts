/** Second factors in the database: each code is used up by one caller, also by another process. */
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { User } from '../../src/model/objects.ts'
import type { Store } from '../../src/store/store.ts'
import { newUser } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

const SEALED = Uint8Array.of(0, 1)
const CODES = [Uint8Array.of(0, 2), Uint8Array.of(0, 3)]
const LIMITS = { most: 3, holdMs: 100 }

let temp: TemporaryStore
let other: Store
let user: User

beforeEach(async () => {
  temp = await temporaryStore()
  other = await temp.open()
  user = await temp.store.users.create(newUser('ops1'))
})
afterEach(async () => {
  await other.close()
  await temp.remove()
})

const enrol = async () => {
  const { secondFactors } = temp.store
  expect(await secondFactors.begin(user.id, SEALED, 1000)).toBe(true)
  const confirmed = { sealed: SEALED, time: 1001, step: 5, drift: 1, digests: CODES }
  expect(await secondFactors.confirm(user.id, confirmed)).toBe(true)
}
/** Counts the calls that were told that they were the first. */
const wins = async (calls: Promise<unknown>[]) => (await Promise.all(calls)).filter(Boolean).length

it('are confirmed once, for the secret that was begun last, and not begun again', async () => {
  const { secondFactors } = temp.store
  await secondFactors.begin(user.id, Uint8Array.of(9), 1)
  const old = { sealed: Uint8Array.of(9), time: 2, step: 5, drift: 0, digests: CODES }
  await secondFactors.begin(user.id, SEALED, 1000)
  expect(await secondFactors.confirm(user.id, old)).toBe(false)
  const confirmed = { ...old, sealed: SEALED }
  expect(await wins([secondFactors, other.secondFactors].map((one) => one.confirm(user.id, confirmed)))).toBe(
    1,
  )
  expect(await other.secondFactors.begin(user.id, SEALED, 3)).toBe(false)
  expect(await other.secondFactors.find(user.id)).toEqual({
    sealed: SEALED,
    tries: 0,
    tried: 0,
    failed: 0,
    begun: 1000,
    enrolled: 2,
    lastStep: 5,
    drift: 0,
    recoveryCodes: 2,
  })
})

it('give a step and a recovery code to one of two processes, and no earlier step to any', async () => {
  await enrol()
  const stores = [temp.store, other, temp.store, other]
  expect(await wins(stores.map(({ secondFactors }) => secondFactors.useStep(user.id, 6, -1)))).toBe(1)
  expect(await wins(stores.map(({ secondFactors }) => secondFactors.useStep(user.id, 5, 0)))).toBe(0)
  expect(
    await wins(stores.map(({ secondFactors }) => secondFactors.useRecoveryCode(user.id, CODES[0]!))),
  ).toBe(1)
  expect(await temp.store.secondFactors.find(user.id)).toMatchObject({
    lastStep: 6,
    drift: -1,
    recoveryCodes: 1,
  })
})

it('count tries of all processes, until a right code or the end of the hold', async () => {
  await enrol()
  const tried = (now: number) => (store: Store) => store.secondFactors.countTry(user.id, now, LIMITS)
  const stores = [temp.store, other, temp.store, other, temp.store]
  expect(await wins(stores.map(tried(2000)))).toBe(LIMITS.most)
  expect(await tried(2099)(other)).toBeUndefined()
  expect(await wins(stores.map(tried(2100)))).toBe(LIMITS.most)
  await other.secondFactors.useStep(user.id, 7, 0)
  expect(await tried(2101)(temp.store)).toBe(1)
  // Of a clock that was set back.
  await wins(stores.map(tried(2102)))
  expect(await tried(1)(other)).toBe(1)
  await temp.store.secondFactors.forgive(user.id)
  expect(await other.secondFactors.find(user.id)).toMatchObject({ tries: 0, failed: 0, recoveryCodes: 2 })
})

it('are required by a group or the profile, and go with their user', async () => {
  const { profiles, secondFactors, userGroups, users } = temp.store
  expect(await secondFactors.policyOf(user)).toBeUndefined()
  const group = await userGroups.create({
    groupName: 'g',
    description: '',
    userIds: [user.id],
    secondFactor: 'required',
  })
  expect(await other.secondFactors.policyOf(user)).toEqual({ rememberS: 0, areKeysEnough: false })
  await userGroups.update(group.id, { secondFactor: 'none' })
  expect(await secondFactors.policyOf(user)).toBeUndefined()
  await profiles.update((await profiles.find(user.profile))!.id, { secondFactor: 'required' })
  expect(await other.secondFactors.policyOf(user)).toEqual({ rememberS: 0, areKeysEnough: false })
  await enrol()
  await users.remove(user.id)
  expect(await secondFactors.find(user.id)).toBeUndefined()
  expect(await secondFactors.setRecoveryCodes(user.id, CODES)).toBe(false)
})

it('are remembered by address as long as the strictest policy says', async () => {
  const { profiles, secondFactors, userGroups } = temp.store
  const profile = (await profiles.find(user.profile))!
  const group = {
    description: '',
    userIds: [user.id],
    secondFactor: 'required' as const,
    secondFactorKeys: true,
  }
  await userGroups.create({ groupName: 'g', ...group, secondFactorRemember: 600 })
  await userGroups.create({ groupName: 'long', ...group, secondFactorRemember: 6000 })
  // Without the requirement it does not count.
  await profiles.update(profile.id, { secondFactorRemember: 1 })
  expect(await other.secondFactors.policyOf(user)).toEqual({ rememberS: 600, areKeysEnough: true })
  await profiles.update(profile.id, { secondFactor: 'required' })
  expect(await other.secondFactors.policyOf(user)).toEqual({ rememberS: 1, areKeysEnough: false })
  const placed = (address: string, firstFactor = 'password') => ({ address, firstFactor })
  const at = (address: string, since: number, now: number, firstFactor?: string) =>
    other.secondFactors.isRemembered(user, placed(address, firstFactor), { since, now })
  // There is no factor yet.
  await secondFactors.remember(user, placed('192.0.2.1'), 500)
  expect(await at('192.0.2.1', 499, 500)).toBe(false)
  await enrol()
  await secondFactors.remember(user, placed('192.0.2.1'), 500)
  expect([await at('192.0.2.1', 499, 500), await at('192.0.2.1', 499, 1000)]).toEqual([true, true])
  // Beside the password, not beside a key.
  expect(await at('192.0.2.1', 499, 500, 'key SHA256:x')).toBe(false)
  // Too long ago, from elsewhere, by a clock that was set back, with another password.
  expect([await at('192.0.2.1', 500, 1000), await at('192.0.2.2', 0, 1000)]).toEqual([false, false])
  expect(await at('192.0.2.1', 0, 499)).toBe(false)
  const changed = { ...user, secretRevision: (user.secretRevision ?? 0) + 1 }
  expect(await secondFactors.isRemembered(changed, placed('192.0.2.1'), { since: 0, now: 1000 })).toBe(false)
  for (let i = 0; i < 16; i++) await secondFactors.remember(user, placed(`198.51.100.${i}`), 600 + i)
  expect([await at('192.0.2.1', 0, 1000), await at('198.51.100.0', 0, 1000)]).toEqual([false, true])
  await secondFactors.remove(user.id)
  expect(await at('198.51.100.0', 0, 1000)).toBe(false)
})

/** Wrong one-time codes hold up further ones, and longer each time. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type Held, SecondFactors, TRIES } from '../../../src/identity/second-factor/second-factors.ts'
import { codeOf, STEP_MS, stepAt } from '../../../src/identity/second-factor/totp.ts'
import type { User } from '../../../src/model/objects.ts'
import { Secret } from '../../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../../src/vault/seal.ts'
import { newUser } from '../../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../../store/temp.ts'

const FROM = '192.0.2.1'
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
let temp: TemporaryStore
let factors: SecondFactors
let user: User
let now = 1_700_000_000_000
let secret = Buffer.alloc(0)
const held: Held[] = []

beforeEach(async () => {
  temp = await temporaryStore()
  held.length = 0
  factors = new SecondFactors({
    store: temp.store,
    keys: { list: async () => [], request: async () => undefined, judge: async () => 'wrong_security_key' },
    vault: {
      seal: (place, text) => {
        secret = Buffer.from(text.reveal())
        return seal(dataKey, place, text)
      },
      open: (place, sealed) => open(dataKey, place, sealed),
    },
    now: () => now,
  })
  factors.onHeld = async (one) => {
    held.push(one)
  }
  user = await temp.store.users.create(newUser('fritz'))
  await factors.begin(user)
  expect(await factors.confirm(user.id, codeNow(), FROM, async () => undefined)).toHaveLength(10)
  now += STEP_MS
})
afterEach(() => temp.remove())

const codeNow = () => Secret.of(codeOf(secret, stepAt(now)))
const isRight = () => factors.isCode(user.id, codeNow(), FROM)
const wrong = async (times: number) => {
  for (let i = 0; i < times; i++) expect(await factors.isCode(user.id, Secret.of('x'), FROM)).toBe(false)
}
const heldMs = () => held.map(({ ms }) => ms)

test('the first time for a while, then twice as long each time, up to a limit', async () => {
  const waits: number[] = []
  for (let i = 0; i < TRIES.doublings + 3; i++) {
    await wrong(TRIES.most)
    const { heldUntil = 0 } = await factors.statusOf(user.id)
    waits.push(heldUntil - now)
    // A code that is not judged makes no hold longer.
    await wrong(2)
    expect(await isRight()).toBe(false)
    now = heldUntil
  }
  const { holdMs, doublings } = TRIES
  expect(waits).toEqual(waits.map((_, i) => holdMs * 2 ** Math.min(i, doublings)))
  expect(held).toEqual(waits.map((ms) => ({ userId: user.id, ms, source: FROM })))
  now += STEP_MS
  expect(await isRight()).toBe(true)
})

test('a right code begins anew, and so does an administrator; one by one, the last wrong code counts', async () => {
  await wrong(TRIES.most - 1)
  expect(await isRight()).toBe(true)
  now += STEP_MS
  await wrong(TRIES.most - 1)
  expect(heldMs()).toEqual([])
  await wrong(1)
  expect(heldMs()).toEqual([TRIES.holdMs])
  now += TRIES.holdMs
  await wrong(TRIES.most)
  expect(await isRight()).toBe(false)
  await factors.release(user.id)
  expect((await factors.statusOf(user.id)).heldUntil).toBeUndefined()
  expect(await isRight()).toBe(true)
  await wrong(TRIES.most)
  expect(heldMs()).toEqual([TRIES.holdMs, 2 * TRIES.holdMs, TRIES.holdMs])
})

test('a recovery code in a hold does not count either, and is not used up', async () => {
  now += STEP_MS
  const codes = (await factors.renew(user.id, codeNow(), FROM, async () => undefined))!
  await wrong(TRIES.most)
  const proved = { user, by: ['directory'] }
  const step = await factors.after(proved, FROM)
  if (step.result !== 'challenge') throw new Error(step.result)
  expect(await step.round.next([Secret.of(codes[0]!)])).toEqual({
    result: 'rejected',
    reason: 'too_many_codes',
  })
  expect((await factors.statusOf(user.id)).recoveryCodes).toBe(10)
})

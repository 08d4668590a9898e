/**
 * Crashes and misbehaving targets at every step of a change (attack case 32): the secret that the target has is always among
 * those that are kept, and when the target is well again it is the stored one.
 */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { DEFAULT_PASSWORD_CHANGE_POLICY } from '../../src/model/password-change.ts'
import { Secret } from '../../src/model/secret.ts'
import { Machine } from '../../src/rotation/machine.ts'
import { Rotation } from '../../src/rotation/rotation.ts'
import type { Store } from '../../src/store/store.ts'
import { newAccount } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { times } from '../times.ts'
import { type Behaviour, FakeTarget, type RotationWorld, rotationWorld } from './fixture.ts'

/** 1,000 when there is time. */
const ACCOUNTS = times(100, 1_000)

class Crash extends Error {}

let temp: TemporaryStore
beforeAll(async () => {
  temp = await temporaryStore()
})
afterAll(() => temp.remove())

/** Runs a machine that dies at its step `at`: before what it does there, or right after. */
async function runUntil(
  world: RotationWorld,
  target: FakeTarget,
  now: number,
  crash: { at: number; isAfter: boolean },
): Promise<boolean> {
  const { store } = world.temp
  let step = 0
  let isDead = false
  const dying = <T extends object>(object: T): T =>
    new Proxy(object, {
      get(of, name) {
        const value = of[name as keyof T]
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          if (isDead) throw new Crash()
          const dies = step++ === crash.at
          if (dies && !crash.isAfter) {
            isDead = true
            throw new Crash()
          }
          const call = () => value.apply(of, given) as Promise<unknown>
          try {
            return await call()
          } finally {
            if (dies) {
              isDead = true
              // biome-ignore lint/correctness/noUnsafeFinally: it is dead whatever the call returned
              throw new Crash()
            }
          }
        }
      },
    })
  const machine = new Machine({
    store: { ...store, secretJobs: dying(store.secretJobs) } as Store,
    vault: world.vault,
    audit: dying({ record: async () => undefined as never }),
    changer: dying(target),
    hold: async () => () => undefined,
    onChanged: async () => undefined,
    pause: async () => undefined,
    now: () => now,
  })
  const [due] = await store.secretJobs.due(now, 1, [])
  const job = due && (await store.secretJobs.claim(due.id, now, now + 1_000))
  if (!job) return false
  await machine.run(job).catch((error: unknown) => {
    if (!(error instanceof Crash)) throw error
  })
  return isDead
}

const ask = (world: RotationWorld, time: number, kind: 'change' | 'check' = 'change') =>
  world.temp.store.secretJobs.add({
    ...{ accountId: world.account.id, type: 'password', kind, cause: 'schedule', user: '' },
    ...{ isForced: false, due: time, created: time },
  })

/** Whether what the target has, or will have, is kept. */
async function isKept(world: RotationWorld, target: FakeTarget): Promise<boolean> {
  const kept = await world.kept()
  return target.mayHave('svc').every((one) => kept.includes(one))
}

const behaviour = fc.constantFrom<Behaviour>(
  ...(['good', 'good', 'good', 'down', 'half', 'hangs', 'late', 'refuses', 'strange'] as const),
)
/** One run of a broker, with the target's mood in it. */
const life = fc.record({
  at: fc.nat(24),
  isAfter: fc.boolean(),
  script: fc.array(behaviour, { maxLength: 8 }),
  lateBy: fc.nat(5),
  isCheck: fc.boolean(),
  acceptsAll: fc.constantFrom(false, false, false, true),
  isGraceful: fc.boolean(),
  silence: fc.constantFrom(
    undefined,
    undefined,
    undefined,
    'unsupported' as const,
    'refused_sign_in' as const,
  ),
})

it('never loses a secret, whatever the target does and wherever the broker dies', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(life, { minLength: 1, maxLength: 5 }),
      fc.boolean(),
      async (lives, withoutAdmin) => {
        const world = await rotationWorld({ withoutAdmin, temp })
        {
          const target = new FakeTarget()
          let now = 1_000_000
          await ask(world, now)
          for (const { script, isCheck, at, isAfter, ...mood } of lives) {
            const crash = { at, isAfter }
            Object.assign(target, mood, { script: [...script] })
            if (isCheck) await ask(world, now - 1, 'check')
            await world.temp.store.secretJobs.release()
            await runUntil(world, target, now, crash)
            expect(await isKept(world, target)).toBe(true)
            now += 4_000_000
          }
          // The target is well again.
          target.settle()
          Object.assign(target, { script: [], acceptsAll: false, isGraceful: false, silence: undefined })
          for (let tries = 0; tries < 4; tries++) {
            await world.temp.store.secretJobs.release()
            await runUntil(world, target, now, { at: -1, isAfter: false })
            now += 4_000_000
          }
          // One that has given up before is asked again.
          await ask(world, now)
          for (let tries = 0; tries < 3; tries++) {
            await world.temp.store.secretJobs.release()
            await runUntil(world, target, now, { at: -1, isAfter: false })
            now += 4_000_000
          }
          expect(await world.stored()).toBe(target.passwords.get('svc'))
          expect(await world.next()).toBeUndefined()
          const account = await world.temp.store.accounts.find(world.account.id)
          expect(account?.secretState).toBeUndefined()
          const { items } = await world.temp.store.secretJobs.list(world.account.id)
          expect(items.every(({ ended }) => ended !== undefined)).toBe(true)
        }
      },
    ),
    { numRuns: times(25, 500) },
  )
})

it('dies at each step of a good change in turn, and ends with the new secret', async () => {
  for (const isAfter of [false, true]) {
    for (let at = 0, hasDied = true; hasDied; at++) {
      const world = await rotationWorld({ temp })
      const target = new FakeTarget()
      await ask(world, 0)
      hasDied = await runUntil(world, target, 0, { at, isAfter })
      expect(await isKept(world, target)).toBe(true)
      for (let now = 1; now < 4; now++) {
        await world.temp.store.secretJobs.release()
        await runUntil(world, target, now * 4_000_000, { at: -1, isAfter: false })
      }
      expect(await world.stored()).toBe(target.passwords.get('svc'))
      expect(await world.stored()).not.toBe('first')
    }
  }
})

const runs = async (world: RotationWorld, target: FakeTarget, now: number) => {
  await world.temp.store.secretJobs.release()
  await runUntil(world, target, now, { at: -1, isAfter: false })
}

it('asks again for the same secret when a change is made late', async () => {
  const world = await rotationWorld({ temp, withoutAdmin: true })
  const target = new FakeTarget()
  target.script = ['good', 'good', 'late']
  target.lateBy = 10
  await ask(world, 0)
  await runs(world, target, 0)
  const next = await world.next()
  // The stored one is still valid; a check says so, and removes nothing.
  await ask(world, 1, 'check')
  await runs(world, target, 1)
  expect(await world.next()).toBe(next)
  await runs(world, target, 4_000_000)
  expect([await world.stored(), target.passwords.get('svc')]).toEqual([next, next])
})

it('keeps one that is refused after a change without an answer, and makes another', async () => {
  const world = await rotationWorld({ temp, withoutAdmin: true })
  const target = new FakeTarget()
  target.lateBy = 1_000
  target.script = ['good', 'good', 'late']
  await ask(world, 0)
  await runs(world, target, 0)
  const doubtful = await world.next()
  target.script = ['good', 'good', 'good', 'refuses']
  await runs(world, target, 4_000_000)
  await runs(world, target, 4_000_000)
  expect(await world.kept()).toEqual([target.passwords.get('svc'), doubtful])
  // It is made after all: the next check finds it.
  target.settle()
  await ask(world, 5_000_000, 'check')
  await runs(world, target, 5_000_000)
  expect([await world.stored(), target.passwords.get('svc')]).toEqual([doubtful, doubtful])
})

it('touches no target that lets anybody in, or gives no verdict', async () => {
  for (const mood of [{ acceptsAll: true }, { silence: 'unsupported' as const }]) {
    const world = await rotationWorld({ temp })
    const target = Object.assign(new FakeTarget(), mood)
    await ask(world, 0)
    await runs(world, target, 0)
    const { items } = await temp.store.secretJobs.list(world.account.id)
    expect(items).toMatchObject([{ outcome: 'failed', code: mood.silence ?? 'accepts_any' }])
    expect([target.changes, await world.next(), await world.stored()]).toEqual([0, undefined, 'first'])
    expect((await temp.store.accounts.find(world.account.id))?.secretState).toBeUndefined()
  }
})

it('keeps both secrets of a target that lets anybody in after a change, until a check can tell them apart', async () => {
  const world = await rotationWorld({ temp, withoutAdmin: true })
  const target = new FakeTarget()
  target.script = ['good', 'good', 'half', 'down']
  await ask(world, 0)
  await runs(world, target, 0)
  const next = await world.next()
  target.acceptsAll = true
  for (const kind of ['check', 'change'] as const) {
    await ask(world, 1, kind)
    await runs(world, target, 4_000_000)
    expect([await world.stored(), await world.next()]).toEqual(['first', next])
  }
  target.acceptsAll = false
  await ask(world, 4_000_001, 'check')
  await runs(world, target, 8_000_000)
  expect([await world.stored(), target.passwords.get('svc')]).toEqual([next, next])
})

it('has the administrator set a secret that the target does not know, or says that nobody can', async () => {
  for (const withoutAdmin of [false, true]) {
    const world = await rotationWorld({ temp, withoutAdmin })
    const target = new FakeTarget()
    target.passwords.set('svc', 'set by hand')
    await ask(world, 1)
    await runs(world, target, 1)
    const { items } = await temp.store.secretJobs.list(world.account.id)
    expect(items).toMatchObject([{ outcome: withoutAdmin ? 'mismatch' : 'changed' }])
    expect(target.passwords.get('svc')).toBe(withoutAdmin ? 'set by hand' : await world.stored())
  }
})

it('finds a change that is made between the two sign-ins that look for it', async () => {
  const world = await rotationWorld({ temp, withoutAdmin: true })
  const target = new FakeTarget()
  target.script = ['good', 'good', 'late']
  // Refuses the wrong one and the next one; has the next one when it is asked for the stored one.
  target.lateBy = 2
  await ask(world, 0)
  await runs(world, target, 0)
  const { items } = await temp.store.secretJobs.list(world.account.id)
  expect(items).toMatchObject([{ outcome: 'changed' }])
  expect(await world.stored()).toBe(target.passwords.get('svc'))
})

it('has the administrator set a secret that a check finds refused, if the policy says so', async () => {
  for (const [isReconciled, isKept] of [
    [true, false],
    [false, false],
    [true, true],
  ]) {
    const world = await rotationWorld({ temp })
    const target = new FakeTarget()
    const policy = await temp.store.passwordChangePolicies.create({
      ...(await temp.store.passwordChangePolicies.find(DEFAULT_PASSWORD_CHANGE_POLICY))!,
      policyName: `policy of ${world.domain.domainName}`,
      isReconciled: isReconciled!,
    })
    await temp.store.domains.update(world.domain.id, {
      change: { ...world.domain.change!, policyId: policy.id },
    })
    if (isKept) await temp.store.accounts.update(world.account.id, { isKept })
    target.passwords.set('svc', 'set by hand')
    await ask(world, 1, 'check')
    await runs(world, target, 1)
    await runs(world, target, 2)
    const { items } = await temp.store.secretJobs.list(world.account.id)
    const outcomes = items.map(({ kind, cause, outcome }) => [kind, cause, outcome])
    expect(outcomes).toContainEqual(['check', 'schedule', 'mismatch'])
    const isSet = isReconciled === true && isKept === false
    expect(outcomes.filter(([kind]) => kind === 'change')).toEqual(
      isSet ? [['change', 'mismatch', 'changed']] : [],
    )
    expect(target.passwords.get('svc')).toBe(isSet ? await world.stored() : 'set by hand')
    expect((await temp.store.accounts.find(world.account.id))?.secretState).toBe(
      isSet ? undefined : 'mismatch',
    )
  }
})

it('tells what is wrong with a change that was made', async () => {
  const world = await rotationWorld({ temp, withoutAdmin: true })
  const target = new FakeTarget()
  target.script = ['good', 'good', 'half']
  await ask(world, 0)
  await runs(world, target, 0)
  const { items } = await temp.store.secretJobs.list(world.account.id)
  expect(items).toMatchObject([{ outcome: 'changed', code: 'unclear', message: 'the connection broke' }])
})

it('changes all accounts of a domain, 32 at a time, and reports each', async () => {
  const world = await rotationWorld({ temp })
  const { store } = world.temp
  const target = new FakeTarget()
  for (let i = 0; i < ACCOUNTS - 2; i++) {
    const { id } = await store.accounts.create(newAccount(world.domain.id, `user${i}`))
    await world.vault.setCredentials(id, [{ type: 'password', password: Secret.of(`old ${i}`) }])
    target.passwords.set(`user${i}`, `old ${i}`)
  }
  let most = 0
  const rotation = new Rotation({
    store,
    vault: world.vault,
    audit: {
      record: async () => {
        most = Math.max(most, rotation.running)
        return undefined as never
      },
    },
    changer: target,
    claim: () => () => undefined,
    now: Date.now,
    onError: (error) => {
      throw error
    },
  })
  const jobs = await rotation.changeDomain(world.domain, 'ops', false)
  expect(jobs).toHaveLength(ACCOUNTS)
  const done = await Promise.all(jobs.map(({ id }) => rotation.attempted(id, 60_000)))
  await rotation.stop()
  expect(done.filter((job) => job?.outcome === 'changed')).toHaveLength(ACCOUNTS)
  expect(most).toBeLessThanOrEqual(32)
  expect([...target.passwords.values()].filter((one) => one.startsWith('old'))).toEqual([])
}, 300_000)

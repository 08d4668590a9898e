/** The lock-out of several processes on one database, each with a connection of its own here. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { type SharedAttempt, SharedLockout } from '../../src/identity/shared-lockout.ts'
import { openStore } from '../../src/store/open.ts'
import type { LockoutRepository, Store } from '../../src/store/store.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const HERE = '192.0.2.1'
const { pairFailures: LIMIT, addressFailures, windowMs, lockMs } = LOCKOUT_LIMITS

let temp: TemporaryStore
let other: Store
let first: SharedLockout
let second: SharedLockout
beforeEach(async () => {
  temp = await temporaryStore()
  other = await openStore({ path: temp.path })
  first = new SharedLockout(temp.store.lockouts)
  second = new SharedLockout(other.lockouts)
})
afterEach(async () => {
  await other.close()
  await temp.remove()
})

/** Makes one failure. Returns true if it locked, or why it was refused. */
async function fail(lockout: SharedLockout, user = 'ops1', now = 0): Promise<boolean | string> {
  const attempt = await lockout.begin(user, HERE, now)
  return typeof attempt === 'string' ? attempt : lockout.fail(attempt, now)
}

async function begun(lockout: SharedLockout, user = 'ops1', now = 0): Promise<SharedAttempt> {
  const attempt = await lockout.begin(user, HERE, now)
  if (typeof attempt === 'string') throw new Error(attempt)
  return attempt
}

/** Returns the methods of a repository that were called. */
function watched(rows: LockoutRepository): { rows: LockoutRepository; calls: string[] } {
  const calls: string[] = []
  const get = (target: LockoutRepository, name: keyof LockoutRepository) => {
    calls.push(name)
    return target[name]
  }
  return { rows: new Proxy(rows, { get } as ProxyHandler<LockoutRepository>), calls }
}

describe('failures', () => {
  it('of two processes are counted together, and lock both', async () => {
    for (let n = 1; n < LIMIT; n++) expect(await fail(n % 2 ? first : second)).toBe(false)
    expect(await fail(second)).toBe(true)
    expect(await fail(first)).toBe('locked')
    expect(await fail(second)).toBe('locked')
    expect(await first.isLocked('ops1', HERE, lockMs - 1)).toBe(true)
    expect(await first.isLocked('ops1', HERE, lockMs)).toBe(false)
    expect(await first.isLocked('ops2', HERE, 0)).toBe(false)
    expect(await fail(first, 'ops1', lockMs)).toBe(false)
  })

  it('are known after a restart', async () => {
    for (let n = 1; n < LIMIT; n++) await fail(first)
    const restarted = new SharedLockout(other.lockouts)
    expect(await fail(restarted)).toBe(true)
    expect(await new SharedLockout(temp.store.lockouts).isLocked('ops1', HERE, 1)).toBe(true)
  })

  it('of many names lock the address', async () => {
    for (let n = 1; n < addressFailures; n++)
      expect(await fail(n % 2 ? first : second, `user${n}`)).toBe(false)
    expect(await fail(first, 'one more')).toBe(true)
    expect(await fail(second, 'yet another')).toBe('locked')
    expect(await first.isLocked('ops1', '198.51.100.1', 0)).toBe(false)
  })

  it('are forgotten after a while, and by a success in either process', async () => {
    for (let n = 1; n < LIMIT; n++) await fail(first)
    expect(await fail(second, 'ops1', windowMs)).toBe(false)
    for (let n = 2; n < LIMIT; n++) await fail(second, 'ops1', windowMs)
    await second.succeed(await begun(second, 'ops1', windowMs))
    for (let n = 1; n < LIMIT; n++) expect(await fail(first, 'ops1', windowMs)).toBe(false)
  })

  it('are as many as there is room for', async () => {
    const small = new SharedLockout(temp.store.lockouts, { ...LOCKOUT_LIMITS, maxEntries: 5 })
    for (let n = 0; n < 30; n++) {
      const attempt = await small.begin('ops1', `198.51.${n}.1`, n)
      if (typeof attempt !== 'string') await small.fail(attempt, n)
    }
    const found = await Promise.all(
      [0, 29].map(async (n) => {
        const { keys } = (await small.begin('ops1', `198.51.${n}.1`, n)) as SharedAttempt
        return (await other.lockouts.find(keys, 30)).pair?.failures
      }),
    )
    expect(found).toEqual([undefined, 1])
  })
})

describe('attempts in progress', () => {
  it('of two processes count like failures: one that nobody counts is the first of each', async () => {
    const attempts: SharedAttempt[] = []
    for (const lockout of [first, second]) {
      for (;;) {
        const attempt = await lockout.begin('ops1', HERE, 0)
        if (typeof attempt === 'string') {
          expect(attempt).toBe('wait')
          break
        }
        attempts.push(attempt)
      }
    }
    expect(attempts.length).toBeLessThanOrEqual(LIMIT + 2)
    expect(attempts.length).toBeGreaterThanOrEqual(LIMIT)
    const locks = []
    for (const attempt of attempts) locks.push(await first.fail(attempt, 0))
    expect(locks.filter(Boolean)).toHaveLength(1)
    expect(await second.begin('ops1', HERE, 0)).toBe('locked')
  })

  it('count exactly where somebody has failed before', async () => {
    await fail(first)
    const guesses = await Promise.all(
      Array.from({ length: 3 * LIMIT }, (_, n) => (n % 2 ? first : second).begin('ops1', HERE, 0)),
    )
    expect(guesses.filter((guess) => typeof guess !== 'string')).toHaveLength(LIMIT - 1)
  })

  it('of a process that has died count for a while only', async () => {
    for (let n = 1; n < LIMIT; n++) await fail(first)
    await begun(first)
    expect(await second.begin('ops1', HERE, 0)).toBe('wait')
    expect(await second.begin('ops1', HERE, 119_999)).toBe('wait')
    expect(typeof (await second.begin('ops1', HERE, 120_000))).toBe('object')
  })

  it('leave nothing behind when they are cancelled', async () => {
    for (let n = 1; n < LIMIT; n++) await fail(first)
    for (let n = 0; n < 3; n++) await first.cancel(await begun(first))
    expect(await fail(second)).toBe(true)
  })
})

it('a sign-in without failures reads once and writes nothing', async () => {
  const { rows, calls } = watched(temp.store.lockouts)
  const lockout = new SharedLockout(rows)
  await lockout.succeed(await begun(lockout))
  expect(calls).toEqual(['find'])
  // Failures of another name from the address, far from the limit, change nothing.
  await fail(first, 'ops2')
  calls.length = 0
  await lockout.succeed(await begun(lockout))
  expect(calls).toEqual(['find'])
})

it('goes on by memory while the store cannot be reached', async () => {
  for (let n = 0; n < 2; n++) await fail(first)
  await temp.store.close()
  for (let n = 3; n < LIMIT; n++) expect(await fail(first)).toBe(false)
  expect(await fail(first)).toBe(true)
  expect(await fail(first)).toBe('locked')
  temp.store = await openStore({ path: temp.path })
})

describe('failures that the store does not take, though it is read', () => {
  /** A lock-out whose store takes writes while `takes`. */
  function halfDeaf() {
    const state = { takes: true }
    const get = (target: LockoutRepository, name: keyof LockoutRepository) =>
      state.takes || name === 'find' ? target[name] : () => Promise.reject(new Error('read only'))
    const rows = new Proxy(temp.store.lockouts, { get } as ProxyHandler<LockoutRepository>)
    return { state, lockout: new SharedLockout(rows) }
  }

  it('count by memory, and lock', async () => {
    const { state, lockout } = halfDeaf()
    for (let n = 0; n < 2; n++) await fail(lockout)
    state.takes = false
    for (let n = 3; n < LIMIT; n++) expect(await fail(lockout)).toBe(false)
    expect(await fail(lockout)).toBe(true)
    expect(await fail(lockout)).toBe('locked')
    expect(await lockout.isLocked('ops1', HERE, lockMs)).toBe(false)
    expect(await fail(lockout, 'ops1', lockMs)).toBe(false)
  })

  it('are added to what is stored, here and by others, until a success', async () => {
    const { state, lockout } = halfDeaf()
    state.takes = false
    for (let n = 0; n < 3; n++) await fail(lockout)
    state.takes = true
    for (let n = 5; n < LIMIT; n++) expect(await fail(n % 2 ? lockout : second)).toBe(false)
    expect(await fail(lockout)).toBe(false)
    expect(await fail(lockout)).toBe(true)
    expect(await fail(lockout)).toBe('locked')
    expect(await second.isLocked('ops1', HERE, 0)).toBe(false)
  })

  it('are forgotten by a success, and after a while', async () => {
    const { state, lockout } = halfDeaf()
    state.takes = false
    for (let n = 1; n < LIMIT; n++) await fail(lockout)
    await lockout.succeed(await begun(lockout))
    for (let n = 1; n < LIMIT; n++) expect(await fail(lockout)).toBe(false)
    expect(await fail(lockout, 'ops1', windowMs)).toBe(false)
  })
})

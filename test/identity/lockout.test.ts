import { describe, expect, it } from 'vitest'
import { type Attempt, Lockout } from '../../src/identity/lockout.ts'
import type { LockoutLimits } from '../../src/store/store.ts'

const LIMITS: LockoutLimits = {
  pairFailures: 3,
  addressFailures: 5,
  windowMs: 1000,
  lockMs: 2000,
  maxEntries: 4,
}

function begin(lockout: Lockout, user: string, source: string, now = 0): Attempt {
  const attempt = lockout.begin(user, source, now)
  if (typeof attempt === 'string') throw new Error(`refused: ${attempt}`)
  return attempt
}

/** Makes one failure. Returns true if it locked, or undefined if it was refused. */
function fail(lockout: Lockout, user: string, source: string, now = 0): boolean | undefined {
  const attempt = lockout.begin(user, source, now)
  return typeof attempt === 'string' ? undefined : lockout.fail(attempt, now)
}

describe('the lock-out', () => {
  it('locks a pair at its last failure, says so once, and ends after its time', () => {
    const lockout = new Lockout(LIMITS)
    expect([1, 2, 3].map((now) => fail(lockout, 'a', '192.0.2.1', now))).toEqual([false, false, true])
    expect(fail(lockout, 'a', '192.0.2.1', 2002)).toBeUndefined()
    expect(lockout.isLocked('a', '192.0.2.1', 2002)).toBe(true)
    expect(fail(lockout, 'a', '192.0.2.1', 2003)).toBe(false)
  })

  it('locks nobody by name alone', () => {
    const lockout = new Lockout(LIMITS)
    for (let i = 0; i < 9; i++) fail(lockout, 'admin', '192.0.2.1')
    expect(fail(lockout, 'admin', '192.0.2.2')).toBe(false)
  })

  it('locks an address that tries many names', () => {
    const lockout = new Lockout(LIMITS)
    expect([...'abcde'].map((user) => fail(lockout, user, '192.0.2.1'))).toEqual([
      false,
      false,
      false,
      false,
      true,
    ])
    expect(fail(lockout, 'f', '192.0.2.1')).toBeUndefined()
    expect(fail(lockout, 'f', '192.0.2.2')).toBe(false)
  })

  it('forgets failures after a while', () => {
    const lockout = new Lockout(LIMITS)
    expect([0, 1, 1000, 1001].map((now) => fail(lockout, 'a', '192.0.2.1', now))).toEqual([
      false,
      false,
      false,
      false,
    ])
  })

  it('forgets the pair at a success, and not the address', () => {
    const lockout = new Lockout(LIMITS)
    for (let i = 0; i < 2; i++) fail(lockout, 'a', '192.0.2.1')
    lockout.succeed(begin(lockout, 'a', '192.0.2.1'))
    for (let i = 0; i < 2; i++) expect(fail(lockout, 'a', '192.0.2.1')).toBe(false)
    expect(fail(lockout, 'b', '192.0.2.1')).toBe(true)
  })

  it('lets no more try at the same time than may fail', () => {
    const lockout = new Lockout(LIMITS)
    const [first, second, third] = [1, 2, 3].map(() => begin(lockout, 'a', '192.0.2.1'))
    expect(lockout.begin('a', '192.0.2.1', 0)).toBe('wait')
    lockout.cancel(first!)
    const fourth = begin(lockout, 'a', '192.0.2.1')
    expect(lockout.begin('a', '192.0.2.1', 0)).toBe('wait')
    expect([second, third, fourth].map((attempt) => lockout.fail(attempt!, 0))).toEqual([false, false, true])
    expect(lockout.begin('a', '192.0.2.1', 0)).toBe('locked')
  })

  it('remembers nothing of those who succeed', () => {
    const lockout = new Lockout(LIMITS)
    for (let i = 0; i < 10; i++) lockout.succeed(begin(lockout, 'a', '192.0.2.1'))
    expect(lockout.size).toEqual({ pairs: 0, addresses: 0 })
  })

  it('takes an IPv6 host by its /64 and a mapped address as IPv4', () => {
    const lockout = new Lockout(LIMITS)
    for (const source of ['2001:db8::1', '2001:db8:0:0:ffff::2', '2001:0db8::3']) fail(lockout, 'a', source)
    expect(lockout.isLocked('a', '2001:db8::9', 0)).toBe(true)
    expect(lockout.isLocked('a', '2001:db8:0:1::9', 0)).toBe(false)
    for (let i = 0; i < 3; i++) fail(lockout, 'a', '::ffff:192.0.2.1')
    expect(lockout.isLocked('a', '192.0.2.1', 0)).toBe(true)
  })

  it('remembers a bounded number of pairs and addresses', () => {
    const lockout = new Lockout(LIMITS)
    for (let i = 0; i < 100; i++) fail(lockout, `u${i}`, `192.0.2.${i}`)
    expect(lockout.size).toEqual({ pairs: 4, addresses: 4 })
  })
})

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { TimeLimits } from '../../../proxies/session/time-limits.ts'

const MINUTE = 60_000

function limited(idleTimeout: number, maxDuration: number) {
  const session = {
    signs: 0,
    warnings: [] as string[],
    ended: undefined as { reason: string; at: number } | undefined,
    warn: (text: string) => void session.warnings.push(text),
    stop: (reason: string) => {
      session.ended = { reason, at: Date.now() }
    },
  }
  const limits = new TimeLimits({ idleTimeout, maxDuration }, session, Date.now)
  return { session, limits }
}

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

describe('a session', () => {
  test('without limits goes on, and no timer with it', () => {
    const { session } = limited(0, 0)
    expect(vi.getTimerCount()).toBe(0)
    expect(session.ended).toBeUndefined()
  })

  test('ends when it has lasted long enough, and is warned a minute before', () => {
    const { session } = limited(0, 3600)
    vi.advanceTimersByTime(59 * MINUTE - 1)
    session.signs++
    expect(session.warnings).toEqual([])
    vi.advanceTimersByTime(1)
    expect(session.warnings).toEqual(['this session ends in 1 minute: that is its limit'])
    vi.advanceTimersByTime(MINUTE - 1)
    expect(session.ended).toBeUndefined()
    vi.advanceTimersByTime(1)
    expect(session.ended).toEqual({
      reason: 'the session has lasted 1 hour, which is the limit',
      at: 60 * MINUTE,
    })
    expect(vi.getTimerCount()).toBe(0)
  })

  test('ends when nothing is done for a time, within a twentieth of it; a sign gives all of it again', () => {
    const { session } = limited(600, 0)
    for (let minute = 0; minute < 30; minute++) {
      session.signs++
      vi.advanceTimersByTime(MINUTE)
    }
    expect(session).toMatchObject({ warnings: [], ended: undefined })
    session.signs++
    const last = Date.now()
    vi.advanceTimersByTime(9.5 * MINUTE)
    expect(session.warnings).toEqual(['this session ends in 1 minute: type something to go on'])
    session.signs++
    vi.advanceTimersByTime(9.5 * MINUTE)
    expect(session.warnings).toHaveLength(2)
    expect(session.ended).toBeUndefined()
    vi.advanceTimersByTime(1.1 * MINUTE)
    expect(session.ended?.reason).toBe('nothing was done for 10 minutes')
    expect(session.ended!.at - last).toBeLessThanOrEqual(20.5 * MINUTE)
  })

  test("of a year does not end in the year's first month", () => {
    const { session } = limited(0, 366 * 24 * 3600)
    vi.advanceTimersByTime(40 * 24 * 60 * MINUTE)
    expect(session.ended).toBeUndefined()
    vi.advanceTimersByTime(326 * 24 * 60 * MINUTE)
    expect(session.ended?.reason).toBe('the session has lasted 366 days, which is the limit')
  })

  test('that has ended is told nothing more', () => {
    const { session, limits } = limited(60, 60)
    limits.stop()
    vi.advanceTimersByTime(10 * MINUTE)
    expect(session).toMatchObject({ warnings: [], ended: undefined })
  })
})

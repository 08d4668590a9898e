/** Writes that wait for the database: each is done once, however often it fails in between. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Arrears } from '../../src/gate/arrears.ts'
import { StoreUnavailableError } from '../../src/store/engine/errors.ts'
import type { Away, Reach } from '../../src/store/store.ts'

let reach: { -readonly [K in keyof Reach]: Reach[K] }
let listener: (away: Away | undefined) => void
let arrears: Arrears
beforeEach(() => {
  vi.useFakeTimers()
  reach = {
    away: undefined,
    check: async () => reach.away === undefined,
    onChange: (added) => {
      listener = added
      return () => undefined
    },
  }
  arrears = new Arrears(reach)
})
afterEach(() => {
  vi.useRealTimers()
})

/** A write that fails so many times, and says which tries were made. */
function failing(times: number) {
  let tries = 0
  const work = async () => {
    tries++
    if (tries <= times) throw new StoreUnavailableError('the connection was lost')
  }
  return { work, tries: () => tries }
}

test('a write that fails while the database is there is tried again, ever more seldom', async () => {
  const { work, tries } = failing(10)
  await arrears.write(work)
  expect(tries()).toBe(2)
  const at: number[] = []
  for (let second = 1; tries() < 11 && second < 600; second++) {
    const before = tries()
    await vi.advanceTimersByTimeAsync(1000)
    if (tries() > before) at.push(second)
  }
  expect(at).toEqual([1, 3, 7, 15, 31, 63, 123, 183, 243])
  expect(vi.getTimerCount()).toBe(0)
})

test('writes wait for the end of an outage, keep their order, and are each done once', async () => {
  reach.away = { since: 0, reason: 'gone' }
  const done: string[] = []
  const named = (name: string, times: number) => {
    const { work } = failing(times)
    return () => work().then(() => void done.push(name))
  }
  await arrears.write(named('a', 2))
  await arrears.write(named('b', 1))
  await vi.advanceTimersByTimeAsync(60_000)
  expect(done).toEqual([])
  reach.away = undefined
  listener(undefined)
  await vi.advanceTimersByTimeAsync(0)
  expect(done).toEqual([])
  await vi.advanceTimersByTimeAsync(1000)
  expect(done).toEqual(['a', 'b'])
  await vi.advanceTimersByTimeAsync(600_000)
  expect(done).toEqual(['a', 'b'])
})

test('a write that is refused for another reason is not tried again', async () => {
  const refused = () => Promise.reject(new Error('no'))
  await expect(arrears.write(refused)).rejects.toThrow('no')
  expect(vi.getTimerCount()).toBe(0)
})

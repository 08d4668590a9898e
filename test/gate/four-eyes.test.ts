/** Sessions that have to be watched: the watchers that count, and the times. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { GateNotice } from '../../src/contract/gate.ts'
import { FIRST_WATCHER_MS, FourEyes, firstHold, NEXT_WATCHER_MS } from '../../src/gate/four-eyes.ts'
import { holdOf } from '../../src/gate/holds.ts'
import type { Watcher } from '../../src/gate/live-session.ts'
import type { RunningSession } from '../../src/gate/running.ts'
import { Suspensions } from '../../src/gate/suspensions.ts'

beforeEach(() => void vi.useFakeTimers({ now: 0 }))
afterEach(() => void vi.useRealTimers())

function newWorld() {
  const events: string[] = []
  const notices: GateNotice['type'][] = []
  const ends: string[] = []
  const suspensions = new Suspensions({
    audit: { record: async (code) => void events.push(code) },
    notify: ({ type }) => void notices.push(type),
    now: () => 0,
  })
  const fourEyes = new FourEyes({ suspensions, end: (_session, reason) => void ends.push(reason) })
  const session = {
    id: 'S',
    userId: 'ops1',
    source: { address: '::1', port: 1 },
    target: { isWatched: true },
    basis: { proof: { method: 'password' } },
    holds: new Map([['unwatched', firstHold(0)]]),
  } as unknown as RunningSession
  fourEyes.begin(session)
  return { events, notices, ends, suspensions, fourEyes, session }
}

const watcher = (userId?: string) => ({ name: userId ?? 'key:x', userId }) as unknown as Watcher

test('another user releases the session; its own user and an API key do not', async () => {
  const { fourEyes, session, notices, events } = newWorld()
  for (const one of [watcher('ops1'), watcher()]) fourEyes.onWatched(session, one)
  await vi.advanceTimersByTimeAsync(0)
  expect(holdOf(session)).toBeDefined()
  fourEyes.onWatched(session, watcher('auditor'))
  await vi.advanceTimersByTimeAsync(FIRST_WATCHER_MS)
  expect(holdOf(session)).toBeUndefined()
  expect([notices, events]).toEqual([['resume'], ['session.resume']])
})

test('it is held at once when the last has left, and ends if nobody comes back', async () => {
  const { fourEyes, session, notices, ends, events } = newWorld()
  const [first, second] = [watcher('eva'), watcher('eva')]
  fourEyes.onWatched(session, first)
  fourEyes.onWatched(session, second)
  await vi.advanceTimersByTimeAsync(0)
  fourEyes.onLeft(session, first)
  expect(holdOf(session)).toBeUndefined()
  fourEyes.onLeft(session, second)
  expect(notices).toEqual(['resume', 'suspend'])
  await vi.advanceTimersByTimeAsync(NEXT_WATCHER_MS - 1)
  expect(ends).toEqual([])
  await vi.advanceTimersByTimeAsync(1)
  expect(ends).toEqual(['nobody came back to watch'])
  expect(events).toEqual(['session.resume', 'session.suspend'])
})

test('a watcher that leaves while its coming is being stored leaves the session held', async () => {
  const { fourEyes, session, notices } = newWorld()
  const one = watcher('eva')
  fourEyes.onWatched(session, one)
  fourEyes.onLeft(session, one)
  await vi.advanceTimersByTimeAsync(0)
  expect(holdOf(session)).toBeDefined()
  expect(notices).toEqual(['suspend'])
})

test('where no watcher can come any more, users read so, from the beginning or when the last has left', async () => {
  const { fourEyes, session, ends, events } = newWorld()
  const REASON = 'a newer broker has taken over, where this session cannot be watched: connect again'
  fourEyes.onUnwatchable([session])
  expect(holdOf(session)?.reason).toBe(REASON)
  const one = watcher('eva')
  fourEyes.onWatched(session, one)
  await vi.advanceTimersByTimeAsync(0)
  fourEyes.onLeft(session, one)
  expect(holdOf(session)?.reason).toBe(REASON)
  await vi.advanceTimersByTimeAsync(NEXT_WATCHER_MS)
  expect(ends).toEqual([REASON])
  expect(events).toEqual(['session.resume', 'session.suspend'])
})

test('a session that nobody comes to watch ends', () => {
  const { ends } = newWorld()
  vi.advanceTimersByTime(FIRST_WATCHER_MS)
  expect(ends).toEqual(['nobody came to watch'])
})

test('an order holds a watched session too, until it is taken back', async () => {
  const { fourEyes, session, suspensions } = newWorld()
  await suspensions.hold(session, 'order', 'wait', { name: 'admin' })
  fourEyes.onWatched(session, watcher('eva'))
  await vi.advanceTimersByTimeAsync(0)
  expect(holdOf(session)?.reason).toBe('wait (admin)')
  expect(await suspensions.release(session, 'order', { name: 'admin' })).toBe(true)
  expect(await suspensions.release(session, 'order', { name: 'admin' })).toBe(false)
  expect(holdOf(session)).toBeUndefined()
})

test('a resumption whose event cannot be written is tried again while the watcher is there', async () => {
  const { fourEyes, session, suspensions } = newWorld()
  const release = vi.spyOn(suspensions, 'release').mockRejectedValueOnce(new Error('cannot be written'))
  fourEyes.onWatched(session, watcher('eva'))
  await vi.advanceTimersByTimeAsync(1)
  expect(holdOf(session)).toBeDefined()
  await vi.advanceTimersByTimeAsync(2_000)
  expect(holdOf(session)).toBeUndefined()
  expect(release).toHaveBeenCalledTimes(2)
})

test('orders at the same moment are about what is held then, in the order of their events', async () => {
  const { session, suspensions, events } = newWorld()
  session.holds?.clear()
  await suspensions.hold(session, 'order', 'first')
  const [, released] = await Promise.all([
    suspensions.hold(session, 'order', 'second'),
    suspensions.release(session, 'order'),
  ])
  expect([released, holdOf(session)]).toEqual([true, undefined])
  expect(events).toEqual(['session.suspend', 'session.suspend', 'session.resume'])
})

/** Clients that wait for an approval: its end, its news, and their patience. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type ApprovalNotice, ApprovalWaits } from '../../../proxies/session/approval-waits.ts'
import { MAX_EARLY_NOTICES } from '../../../proxies/session/limits.ts'
import { Patience } from '../../../proxies/session/patience.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function world() {
  const withdrawn: string[] = []
  const waits = new ApprovalWaits({
    withdraw: async ({ identity, approval }) => void withdrawn.push(`${identity} ${approval}`),
  })
  const notice = (state: ApprovalNotice['state'], identity = 't1', text: string = state): void =>
    waits.noticed({ type: 'approval', identity, approval: 'A1', state, text })
  const begin = (identity = 't1') => {
    const gone = new AbortController()
    const news: string[] = []
    const end = waits.end({
      identity,
      wait: { approval: 'A1' },
      onNews: (text) => news.push(text),
      signal: gone.signal,
    })
    return { gone, news, end }
  }
  return { waits, withdrawn, notice, begin }
}

test('a client hears each answer, then the end, and nothing of another client', async () => {
  const { waits, withdrawn, notice, begin } = world()
  const [one, other] = [begin('t1'), begin('t2')]
  notice('pending', 't1', 'one of two')
  notice('accepted', 't1', 'granted by boss')
  notice('pending', 't1', 'too late')
  expect(await one.end).toEqual({ state: 'accepted', text: 'granted by boss' })
  expect([one.news, other.news, waits.count]).toEqual([['one of two'], [], 1])
  notice('rejected', 't2', 'no')
  expect(await other.end).toEqual({ state: 'rejected', text: 'no' })
  expect(withdrawn).toEqual([])
})

test('a notice may come before the client waits', async () => {
  const { notice, begin } = world()
  notice('pending')
  notice('accepted')
  expect(await begin().end).toMatchObject({ state: 'accepted' })
})

test('early notices are bounded', () => {
  const { waits } = world()
  for (let n = 0; n < 3 * MAX_EARLY_NOTICES; n++)
    waits.noticed({ type: 'approval', identity: `t${n}`, approval: 'A', state: 'pending', text: 'x' })
  expect(waits.count).toBe(0)
})

test('one that gives up withdraws the request, once, even before it waits', async () => {
  const { waits, withdrawn, notice, begin } = world()
  const waiting = begin()
  waiting.gone.abort()
  waiting.gone.abort()
  notice('accepted')
  expect(await waiting.end).toMatchObject({ state: 'left' })
  const gone = AbortSignal.abort()
  const late = waits.end({ identity: 't3', wait: { approval: 'A1' }, onNews: () => undefined, signal: gone })
  expect(await late).toMatchObject({ state: 'left' })
  expect([withdrawn, waits.count]).toEqual([['t1 A1', 't3 A1'], 0])
})

test('a broker that is gone is no fault of the client', async () => {
  const waits = new ApprovalWaits({ withdraw: () => Promise.reject(new Error('gone')) })
  const gone = new AbortController()
  const end = waits.end({
    identity: 't',
    wait: { approval: 'A' },
    onNews: () => undefined,
    signal: gone.signal,
  })
  gone.abort()
  expect(await end).toMatchObject({ state: 'left' })
})

test('patience ends without input, later while an approval may still come, and never after the stop', () => {
  const onOver = vi.fn()
  const patience = new Patience(1_000, onOver)
  patience.extend(60_000)
  vi.advanceTimersByTime(60_500)
  patience.refresh()
  vi.advanceTimersByTime(60_500)
  expect(onOver).not.toHaveBeenCalled()
  patience.extend(0)
  vi.advanceTimersByTime(999)
  expect(onOver).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(onOver).toHaveBeenCalledOnce()
  const other = new Patience(1_000, onOver)
  other.stop()
  other.extend(5)
  other.refresh()
  expect(vi.getTimerCount()).toBe(0)
  const far = new Patience(1_000, onOver)
  far.extend(1e15)
  vi.advanceTimersByTime(1_000_000)
  expect(onOver).toHaveBeenCalledOnce()
  far.stop()
})

import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Slack } from '../../src/memory/slack.ts'

const MINUTE = 60_000
const collector = globalThis.gc
const collect = vi.fn()

beforeEach(() => {
  vi.useFakeTimers()
  collect.mockReset()
  globalThis.gc = collect as unknown as NonNullable<typeof globalThis.gc>
})
afterEach(() => {
  vi.useRealTimers()
  globalThis.gc = collector
})

test('everything is collected once when the last of many users has been gone for a while', async () => {
  const slack = await Slack.open()
  let users = 30
  slack.watch(() => users)
  vi.advanceTimersByTime(MINUTE)
  users = 0
  vi.advanceTimersByTime(30_000)
  expect(collect).not.toHaveBeenCalled()
  vi.advanceTimersByTime(10 * MINUTE)
  expect(collect).toHaveBeenCalledExactlyOnceWith({
    type: 'major',
    execution: 'sync',
    flavor: 'last-resort',
  })
  users = 30
  vi.advanceTimersByTime(MINUTE)
  users = 0
  vi.advanceTimersByTime(MINUTE)
  expect(collect).toHaveBeenCalledTimes(2)
  slack.stop()
})

test('nothing stands still for few users, nor while there is one, nor after the end', async () => {
  const slack = await Slack.open()
  let users = 5
  slack.watch(() => users)
  vi.advanceTimersByTime(MINUTE)
  users = 0
  vi.advanceTimersByTime(MINUTE)
  users = 1_000
  vi.advanceTimersByTime(MINUTE)
  users = 1
  vi.advanceTimersByTime(10 * MINUTE)
  slack.stop()
  users = 0
  vi.advanceTimersByTime(10 * MINUTE)
  expect(collect).not.toHaveBeenCalled()
})

test('a process without the collector, or without malloc_trim, goes on', async () => {
  globalThis.gc = undefined
  const slack = await Slack.open()
  expect(() => slack.release()).not.toThrow()
})

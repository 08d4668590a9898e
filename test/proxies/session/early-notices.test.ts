/** Notices of the gate for a session that its proxy does not know yet. */
import { expect, test } from 'vitest'
import { EarlyNotices, type SessionNotice } from '../../../proxies/session/early-notices.ts'
import { MAX_EARLY_NOTICES } from '../../../proxies/session/limits.ts'

const watch = (session: string, sync: number): SessionNotice => ({ type: 'watch', session, sync })
const stop = (session: string): SessionNotice => ({ type: 'stop', session, reason: 'enough' })

test('is told once it does, the last of each kind', () => {
  const early = new EarlyNotices()
  for (const notice of [watch('a', 1), stop('b'), stop('a'), watch('a', 2)]) early.keep(notice)
  expect(early.take('a')).toEqual([watch('a', 2), stop('a')])
  expect(early.take('a')).toEqual([])
  expect(early.take('b')).toEqual([stop('b')])
})

test('is of a bounded number of sessions', () => {
  const early = new EarlyNotices()
  for (let index = 0; index <= MAX_EARLY_NOTICES; index++) early.keep(watch(String(index), 1))
  expect(early.take('0')).toEqual([])
  expect(early.take('1')).toHaveLength(1)
})

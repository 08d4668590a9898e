/** The events of session workers that die. */
import { expect, test } from 'vitest'
import { lossLog } from '../../src/broker/worker-options.ts'
import { LOOP_LENGTH } from '../../src/workers/workers.ts'

const MINUTE = 60_000

test('a loop is an alert when it is one, and every quarter of an hour while it goes on', () => {
  let now = 0
  const alerts: number[] = []
  let losses = 0
  const lost = lossLog(
    {
      record: async (code) => {
        if (code === 'worker.loop') alerts.push(now / MINUTE)
        else losses++
      },
    },
    { error: () => undefined },
    () => now,
  )
  const die = (early: number) => lost({ pid: 1, reason: 'the session worker died', sessions: 0 }, early)
  for (let early = 1; early <= 100; early++, now += MINUTE / 2) die(early)
  expect(losses).toBe(100)
  expect(alerts).toEqual([(LOOP_LENGTH - 1) / 2, 16, 31, 46])
  // One that lived, and another loop.
  now += 20 * MINUTE
  for (let early = 0; early <= LOOP_LENGTH; early++) die(early)
  expect(alerts).toHaveLength(5)
})

import { expect, test } from 'vitest'
import { KeptSinks } from '../../src/broker/kept-sinks.ts'
import { feedOf } from './parts-of-metrics.ts'

const make = async () => feedOf('syslog', 0, 0).sink

test('a receiver that is made of the same is the same; of others there are new ones', async () => {
  const kept = new KeptSinks()
  const before = await kept.of([{ id: 'a' }, { id: 'b' }], make)
  const after = await kept.of([{ id: 'b' }, { id: 'c' }], make)
  expect(after[0]).toBe(before[1])
  expect(before).not.toContain(after[1])
  // One that went and came back is new.
  const [back] = await kept.of([{ id: 'a' }], make)
  expect(back).not.toBe(before[0])
})

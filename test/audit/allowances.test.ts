import { expect, test } from 'vitest'
import { Allowances } from '../../src/audit/allowances.ts'

const RATE = { burst: 3, perSecond: 0.1 }
/** More than are kept. */
const NAMES = 5000

test('a name has an amount at once, and more every second', () => {
  const allowances = new Allowances(RATE)
  const taken = (now: number) => allowances.take('a', now)
  expect([taken(0), taken(0), taken(0), taken(0)]).toEqual([true, true, true, false])
  expect([taken(9_999), taken(10_001), taken(10_001)]).toEqual([false, true, false])
  expect(allowances.take('b', 10_001)).toBe(true)
})

test('a flood of new names does not bring back the allowance of one that is used up', () => {
  const allowances = new Allowances(RATE)
  for (let i = 0; i < RATE.burst; i++) allowances.take('used up', 0)
  for (let i = 0; i < NAMES; i++) expect(allowances.take(`new ${i}`, i)).toBe(true)
  expect(allowances.take('used up', NAMES)).toBe(false)
})

test('names that have their whole allowance back make room for others', () => {
  const allowances = new Allowances(RATE)
  for (let i = 0; i < NAMES; i++) for (let n = 0; n < RATE.burst; n++) allowances.take(`old ${i}`, 0)
  const later = (1000 * RATE.burst) / RATE.perSecond
  for (let i = 0; i < 100; i++) {
    for (let n = 0; n < RATE.burst; n++) expect(allowances.take(`new ${i}`, later)).toBe(true)
  }
  for (let i = 0; i < 100; i++) expect(allowances.take(`new ${i}`, later)).toBe(false)
})

/** Passwords that policies make: each meets its policy, and a policy that none meets is known before. */
import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import {
  alphabets,
  CHARACTER_CLASSES,
  CLASS_NAMES,
  generatePassword,
  type PasswordRules,
  passwordRulesFlaw,
} from '../../src/model/password-change.ts'
import { nextRun, scheduleFlaw } from '../../src/rotation/schedule.ts'

const rules = fc.record({
  length: fc.integer({ min: 8, max: 128 }),
  minimums: fc.record(
    { lower: fc.nat(20), upper: fc.nat(20), digit: fc.nat(20), special: fc.nat(20) },
    { requiredKeys: [] },
  ),
  excluded: fc.string({ maxLength: 40 }),
})
const count = (password: string, of: string) => [...password].filter((one) => of.includes(one)).length

it('makes passwords that meet their rules, or says why there are none', () => {
  fc.assert(
    fc.property(rules, (given) => {
      const rules = given as PasswordRules
      if (passwordRulesFlaw(rules) !== undefined) {
        expect(() => generatePassword(rules, (n) => randomInt(n))).toThrow(RangeError)
        return
      }
      const password = generatePassword(rules, (n) => randomInt(n))
      const allowed = [...alphabets(rules).values()].join('')
      expect(password).toHaveLength(rules.length)
      expect(count(password, allowed)).toBe(rules.length)
      expect(count(password, rules.excluded)).toBe(0)
      for (const name of CLASS_NAMES)
        expect(count(password, CHARACTER_CLASSES[name])).toBeGreaterThanOrEqual(rules.minimums[name] ?? 0)
    }),
  )
})

it('draws each character at each place alike', () => {
  const rules = { length: 20, minimums: { digit: 1, upper: 1 }, excluded: '' }
  const places = Array.from({ length: 20 }, () => new Map<string, number>())
  for (let i = 0; i < 2_000; i++)
    for (const [at, one] of [...generatePassword(rules, (n) => randomInt(n))].entries())
      places[at]?.set(one, (places[at]?.get(one) ?? 0) + 1)
  // None of the places has far more digits than another.
  const digits = places.map((found) =>
    [...found].filter(([one]) => /\d/.test(one)).reduce((sum, [, n]) => sum + n, 0),
  )
  expect(Math.max(...digits) / Math.min(...digits)).toBeLessThan(1.4)
})

it.each([
  [{ length: 8, minimums: {}, excluded: '' }, 'no class'],
  [{ length: 8, minimums: { digit: 9 }, excluded: '' }, '9 characters are needed'],
  [{ length: 20, minimums: { digit: 1 }, excluded: '0123456789' }, 'excluded'],
  [{ length: 8, minimums: { digit: 8 }, excluded: '' }, 'bits'],
])('refuses rules that make no good password: %o', (rules, why) => {
  expect(passwordRulesFlaw(rules)).toContain(why)
})

it('reads schedules in their time zones, over the change of the clocks', () => {
  const at = (text: string) => Date.parse(text)
  expect(scheduleFlaw('30 2 * * *', 'Europe/Paris')).toBeUndefined()
  expect(scheduleFlaw('30 2 * *', 'Europe/Paris')).toBeDefined()
  expect(scheduleFlaw('30 2 * * *', 'Europe/Nowhere')).toBeDefined()
  expect(scheduleFlaw('0 0 30 2 *', 'UTC')).toBeDefined()
  expect(nextRun('0 4 * * *', 'Europe/Paris', at('2027-03-27T12:00:00Z'))).toBe(at('2027-03-28T02:00:00Z'))
  expect(nextRun('0 4 * * *', 'Europe/Paris', at('2027-03-26T12:00:00Z'))).toBe(at('2027-03-27T03:00:00Z'))
})

/** Answers about tokens that are remembered: each for its own token, for a while, and a limited number. */
import { expect, test } from 'vitest'
import { TokenCache } from '../../../../src/identity/methods/oidc/token-cache.ts'

const LASTS = 30_000
const MAX_KEPT = 1000

function cache() {
  const clock = { now: 0 }
  const made = new TokenCache<string>(LASTS, () => clock.now)
  const asked: string[] = []
  const of = (token: string, answer = `of ${token}`) =>
    made.of(token, async () => {
      asked.push(token)
      return answer
    })
  return { clock, made, asked, of }
}

test('an answer counts for its own token only, as long as it is fresh', async () => {
  const { clock, asked, of } = cache()
  const alike = ['abc', 'ABC', 'abc ', 'abcd', '', 'ab\u0063\u0301', '__proto__', 'constructor']
  for (const token of [...alike, ...alike]) expect(await of(token)).toBe(`of ${token}`)
  expect(asked).toEqual(alike)
  clock.now = LASTS - 1
  expect(await of('abc', 'another')).toBe('of abc')
  clock.now = LASTS
  expect(await of('abc', 'another')).toBe('another')
  // A use keeps nothing longer, and an answer that was read anew lasts from then on.
  clock.now = 2 * LASTS - 1
  expect(await of('abc', 'a third')).toBe('another')
  clock.now = 2 * LASTS
  expect(await of('abc', 'a third')).toBe('a third')
})

test('simultaneous questions about a token are one; a failure is not kept', async () => {
  const { made, asked, of } = cache()
  expect(await Promise.all([of('one'), of('one'), of('two')])).toEqual(['of one', 'of one', 'of two'])
  expect(asked).toEqual(['one', 'two'])
  const { promise, reject } = Promise.withResolvers<string>()
  const both = [0, 1].map(() => made.of('bad', () => promise))
  reject(new Error('away'))
  for (const one of both) await expect(one).rejects.toThrow('away')
  expect([made.size, await of('bad')]).toEqual([2, 'of bad'])
})

test('a failure that comes late forgets no newer answer', async () => {
  const { clock, made, of } = cache()
  const { promise, reject } = Promise.withResolvers<string>()
  const slow = made.of('one', () => promise)
  clock.now = LASTS
  await of('one')
  reject(new Error('away'))
  await expect(slow).rejects.toThrow('away')
  expect(await of('one', 'another')).toBe('of one')
})

test('a limited number is kept: the oldest makes room', async () => {
  const { made, asked, of } = cache()
  for (let at = 0; at <= MAX_KEPT; at++) await of(`token ${at}`)
  expect(made.size).toBe(MAX_KEPT)
  asked.length = 0
  await of(`token ${MAX_KEPT}`)
  await of('token 1')
  await of('token 0')
  expect(asked).toEqual(['token 0'])
  expect(made.size).toBe(MAX_KEPT)
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cleanFields, cleanValue, cut, MAX_VALUE } from '../../../src/audit/events/clean.ts'

describe('a value', () => {
  test.each([
    ['root\nNov 20 00:00:00 bastion sallyport: forged', 'root\\nNov 20 00:00:00 bastion sallyport: forged'],
    ['a\r\tb', 'a\\r\\tb'],
    ['\u001b]0;title\u0007', '\\u001b]0;title\\u0007'],
    ['\u0000\u007f\u009b', '\\u0000\\u007f\\u009b'],
    ['gpj.\u202eexe', 'gpj.\\u202eexe'],
    ['line\u2028separator', 'line\\u2028separator'],
    ['lone \ud800 surrogate', 'lone \ufffd surrogate'],
    ['DOMAIN\\user "quoted" [x] | é 日本', 'DOMAIN\\user "quoted" [x] | é 日本'],
  ])('%j becomes %j', (text, clean) => expect(cleanValue(text)).toBe(clean))

  test('is bounded in bytes, at the end of a character', () => {
    expect(Buffer.byteLength(cleanValue('日'.repeat(100_000)))).toBeLessThanOrEqual(MAX_VALUE)
    expect(cleanValue('x'.repeat(MAX_VALUE))).toBe('x'.repeat(MAX_VALUE))
    expect(cleanValue('x'.repeat(MAX_VALUE + 1))).toMatch(/^x+…$/)
    expect(Buffer.byteLength(cleanValue('\n'.repeat(5000)))).toBeLessThanOrEqual(MAX_VALUE)
  })

  test('whatever it was is one printable line of bounded length', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 5000 }),
        fc.integer({ min: 3, max: 300 }),
        (text, limit) => {
          const clean = cleanValue(text)
          expect(clean).not.toMatch(/\p{Cc}/u)
          expect(clean.isWellFormed()).toBe(true)
          expect(Buffer.byteLength(clean)).toBeLessThanOrEqual(MAX_VALUE)
          const short = cut(clean, limit)
          expect(Buffer.byteLength(short)).toBeLessThanOrEqual(limit)
        },
      ),
    )
  })
})

test('fields stand in the order of the catalogue, without the empty ones', () => {
  const fields = { bytes_out: 1, user: 'a\n', session: 's', reason: '' }
  expect(Object.entries(cleanFields(fields))).toEqual([
    ['session', 's'],
    ['user', 'a\\n'],
    ['bytes_out', 1],
  ])
})

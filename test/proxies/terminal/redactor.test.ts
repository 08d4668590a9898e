import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Redactor } from '../../../proxies/terminal/redactor.ts'

const through = (secrets: string[], pieces: string[]): string => {
  const redactor = new Redactor(secrets)
  const shown = pieces.map((piece) => redactor.redact(Buffer.from(piece)))
  return Buffer.concat([...shown, redactor.flush()]).toString()
}

describe('secrets in output', () => {
  test.each([
    [['Lab-Pass1'], ['Password: ', 'Lab-Pass1\r\n', '$ '], 'Password: \r\n$ '],
    [['Lab-Pass1'], ['La', 'b-Pa', 'ss1', '\r\n'], '\r\n'],
    [['aab'], ['aaab'], 'a'],
    [['aab'], ['aa', 'ab'], 'a'],
    [['one', 'two'], ['onetwothree'], 'three'],
    [['$ x'], ['peer$ '], 'peer$ '],
    [[''], ['all'], 'all'],
    [[], ['all'], 'all'],
    [['pässwort'], ['say pässwort.'], 'say .'],
    // One begins with the other, or is a part of it.
    [['abc', 'abcdef'], ['abcdef.'], '.'],
    [['abc', 'abcdef'], ['abc', 'def.'], '.'],
    [['abc', 'abcdef'], ['abc', 'dx.'], 'dx.'],
    [['abc', 'abcdef'], ['abc'], ''],
    [['abc', 'xabcq'], ['xab', 'c', 'q.'], '.'],
  ])('%j in %j', (secrets, pieces, shown) => {
    expect(through(secrets, pieces)).toBe(shown)
  })

  test('are taken out however the output is cut, the longer first, and nothing else is', () => {
    const secret = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 })
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.'), maxLength: 6 }))
    fc.assert(
      fc.property(fc.array(secret, { minLength: 1, maxLength: 2 }), pieces, (words, parts) => {
        const longestFirst = words.toSorted((a, b) => b.length - a.length)
        expect(through(words, parts)).toBe(parts.join('').replace(RegExp(longestFirst.join('|'), 'g'), ''))
      }),
      { numRuns: 1_000 },
    )
  })

  test('do not show in what is held back, either', () => {
    const redactor = new Redactor(['abc', 'abcdef'])
    expect(redactor.redact(Buffer.from('say abc')).toString()).toBe('say ')
    expect(Buffer.from(redactor.held).toString()).toBe('')
    expect(redactor.redact(Buffer.from('de')).toString()).toBe('')
    expect(Buffer.from(redactor.held).toString()).toBe('de')
  })
})

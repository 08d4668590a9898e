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
  ])('%j in %j', (secrets, pieces, shown) => {
    expect(through(secrets, pieces)).toBe(shown)
  })

  test('is taken out however the output is cut, and nothing else is', () => {
    const secret = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength: 4 })
    const pieces = fc.array(fc.string({ unit: fc.constantFrom('a', 'b', 'c', '.'), maxLength: 6 }))
    fc.assert(
      fc.property(secret, pieces, (word, parts) => {
        expect(through([word], parts)).toBe(parts.join('').replaceAll(word, ''))
      }),
    )
  })
})

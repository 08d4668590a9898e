import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { lookError } from '../../src/model/look-alikes.ts'
import { accountNameError, guestNameError, lookKey, nameKey, userNameError } from '../../src/model/names.ts'

describe('a name', () => {
  test.each([
    'ops1',
    'Zoë',
    'Nguyễn Văn Ệ',
    'Иван Петров',
    'Ёлка',
    'Σωκράτης',
    'Անի',
    'דנה',
    'محمد',
    'สมชาย กำ',
    'अमित',
    '田中タロウ',
    'たなかtaro2',
    '김철수',
    'kim철수',
    '陳大文',
    'svc@corp.com',
    'o’neill',
    'a b',
    '12-3_4.5',
  ])('of people and programs is one: %s', (name) => {
    expect(userNameError(name)).toBeUndefined()
    expect(guestNameError(name)).toBeUndefined()
  })

  test.each([
    ['a zero width joiner', 'ops\u200d1'],
    ['a zero width non-joiner', 'ops\u200c1'],
    ['a zero width space', 'ops\u200b1'],
    ['a soft hyphen', 'ops\u00ad1'],
    ['a word joiner', 'ops\u20601'],
    ['a variation selector', 'ops1\ufe0f'],
    ['a supplementary variation selector', 'ops1\u{e0100}'],
    ['a mark of direction', '\u202eops1'],
    ['an isolate', 'ops1\u2066'],
    ['a tag', 'ops1\u{e0061}'],
    ['a Hangul filler', 'ops\u3164'],
    ['a half-width Hangul filler', 'ops\uffa0'],
    ['a Khmer inherent vowel', 'ops\u17b4'],
    ['a combining grapheme joiner', 'ops\u034f1'],
    ['a Mongolian vowel separator', 'ops\u180e1'],
    ['a byte order mark', '\ufeffops1'],
    ['an invisible operator', 'ops\u20621'],
  ])('holds nothing that is not shown: %s', (_, name) => {
    for (const rule of [userNameError, accountNameError, guestNameError]) expect(rule(name)).toMatch(/not/)
  })

  test.each([
    ['Cyrillic among Latin', 'аdmin'],
    ['Latin among Cyrillic', 'Ивaн'],
    ['Greek among Latin', 'rοot'],
    ['Cyrillic among Greek', 'Σωкράτης'],
    ['Armenian among Latin', 'rօօt'],
    ['Cherokee', 'ᏚᎪᎳ'],
    ['Lisu', 'ꓐꓳꓐ'],
    ['Coptic', 'ⲟⲣⲥ'],
    ['Runes', 'ᚨᛞ'],
    ['Hangul among Kana', 'か김'],
    ['Cyrillic among Han', '田中а'],
    ['private use', 'ops\ue000'],
    ['an unassigned character', 'ops\u0378'],
  ])('is not of several scripts, nor of one that nobody reads: %s', (_, name) => {
    expect(userNameError(name)).toMatch(/several scripts/)
  })

  test.each([
    ['full-width letters', 'ａｄｍｉｎ'],
    ['mathematical letters', '𝐚𝐝𝐦𝐢𝐧'],
    ['letters in circles', 'ⓐⓓⓜⓘⓝ'],
    ['a ligature', 'oﬃce'],
    ['a long s', 'opſ1'],
    ['superscripts', 'ops¹'],
    ['a space that breaks no line', 'a\u00a0b'],
    ['an ideographic space', 'a\u3000b'],
    ['a Roman number', 'Ⅷ'],
  ])('is not of other forms of letters: %s', (_, name) => {
    expect(userNameError(name)).toMatch(/other forms/)
  })

  test.each([
    ['on nothing', '\u0301ops1'],
    ['twice', 'ops\u0323\u03231'],
    ['in piles', 'o\u0300\u0301\u0302\u0303\u0304ps1'],
  ])('holds no marks %s', (_, name) => {
    expect(userNameError(name)).toMatch(/marks/)
  })

  test('is judged in a time that its length bounds, whatever it holds', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
        const error = lookError(name)
        expect(error === undefined || error.startsWith('a name must not')).toBe(true)
        expect(typeof lookKey(name)).toBe('string')
      }),
    )
  })
})

describe('names that show alike', () => {
  test.each([
    ['сор', 'cop'],
    ['СОР', 'COP'],
    ['ВОВ', 'bob'],
    ['ρορ', 'pop'],
    ['ΡΟΡ', 'POP'],
    ['ορο', 'оро'],
    ['ѕоѕ', 'SOS'],
    ['հո', 'hn'],
    ['аё', 'aë'],
    ['工口', 'エロ'],
    ['ɑdmin', 'admin'],
  ])('%s and %s have a key in common', (one, other) => {
    expect(lookKey(one)).toBe(lookKey(other))
    expect(nameKey(one)).not.toBe(nameKey(other))
  })

  test.each([
    ['ops1', 'opsl'],
    ['Иван', 'Ivan'],
    ['zoe', 'zoë'],
  ])('%s and %s have not', (one, other) => {
    expect(lookKey(one)).not.toBe(lookKey(other))
  })

  test('of ASCII it is what they are compared by anyway', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary-ascii' }), (name) => {
        expect(lookKey(name)).toBe(nameKey(name))
      }),
    )
  })
})

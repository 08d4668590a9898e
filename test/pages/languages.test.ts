import { expect, test } from 'vitest'
import { LANGUAGES, preferredOf } from '../../src/pages/languages/languages.ts'

/** Returns `path → text` of a catalogue. */
function textsOf(part: object, path = ''): Map<string, unknown> {
  return new Map(
    Object.entries(part).flatMap(([key, value]) =>
      typeof value === 'object' && value !== null
        ? [...textsOf(value, `${path}${key}.`)]
        : ([[`${path}${key}`, value]] as [string, unknown][]),
    ),
  )
}

test('every language has every text, and none is left in English', () => {
  const english = textsOf(LANGUAGES.en)
  for (const [language, catalogue] of Object.entries(LANGUAGES)) {
    const own = textsOf(catalogue)
    expect([...own.keys()].sort(), language).toEqual([...english.keys()].sort())
    for (const [key, text] of own) {
      const shown = typeof text === 'function' ? text('X', 'Y') : text
      expect(shown, `${language} ${key}`).toMatch(/\S/)
      const long = typeof shown === 'string' && shown.split(' ').length > 2
      if (language !== 'en' && long) expect(text, `${language} ${key}`).not.toBe(english.get(key))
    }
  }
})

test.each([
  ['de', 'de'],
  ['fr-CA, en;q=0.5', 'fr'],
  ['nl, es;q=0.3, de;q=0.8', 'de'],
  ['DE-at', 'de'],
  ['en;q=0, fr;q=0.1', 'fr'],
  ['constructor, __proto__', undefined],
  ['*', undefined],
  ['', undefined],
  [`${'x,'.repeat(10_000)}de`, undefined],
])('%s asks for %s', (field, language) => {
  expect(preferredOf(field)).toBe(language)
})

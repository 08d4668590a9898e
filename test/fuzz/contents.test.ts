/**
 * The index over sessions against a linear search: any text as a value finds the lines with its words, and no
 * others.
 */
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { ContentDatabase } from '../../src/contents/database.ts'
import { type Phrase, phrasesOf } from '../../src/search/words.ts'
import { idOf, makeFolder, output, recorded, removeFolders } from '../contents/support.ts'

afterAll(removeFolders)

const RUNS = 300
/** Few words, so that they occur together; and all characters with a meaning in FTS5, SQL, or the grammar. */
const piece = fc.constantFrom(
  ...['ab', 'abc', 'AB', 'x1', 'or', 'AND', 'NOT', 'NEAR', 'text', 'rowid'],
  ...[
    ' ',
    '  ',
    '"',
    '""',
    "'",
    '(',
    ')',
    '{',
    '}',
    ':',
    '-',
    '+',
    '^',
    '/',
    '.',
    '\\',
    ';',
    '--',
    '%',
    '_',
    '\t',
  ],
)
const line = fc.array(piece, { minLength: 1, maxLength: 12 }).map((pieces) => pieces.join(''))
const value = fc.array(fc.oneof({ weight: 4, arbitrary: piece }, fc.constant('*')), { maxLength: 8 })

const wordsOf = (text: string) => text.toLowerCase().match(/[a-z0-9]+/g) ?? []

function holds(text: string, { text: phrase, isBeginning }: Phrase): boolean {
  const words = wordsOf(text)
  const wanted = wordsOf(phrase)
  return words.some((_, from) =>
    wanted.every((word, i) => {
      const found = words[from + i]
      const mayGoOn = isBeginning && i === wanted.length - 1
      return found === word || (mayGoOn && found?.startsWith(word) === true)
    }),
  )
}

test('finds what has the words', () => {
  const lines = fc.sample(line, { numRuns: 200, seed: 7 })
  const database = new ContentDatabase(join(makeFolder(), 'search.db'), 'full')
  for (const [number, text] of lines.entries()) {
    database.putRecording(recorded(number + 1, { output: output(text) }))
  }
  fc.assert(
    fc.property(value, (pieces) => {
      const phrases = phrasesOf(pieces.join('').split('*'))
      if (typeof phrases === 'string') return
      const expected = lines.flatMap((text, i) =>
        phrases.every((one) => holds(text, one)) ? [idOf(i + 1)] : [],
      )
      const found = database.sessionsWith({ field: 'output', phrases })
      expect(typeof found === 'string' ? found : found.toSorted()).toEqual(expected)
    }),
    { numRuns: RUNS },
  )
  database.close()
})

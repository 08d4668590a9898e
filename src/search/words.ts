/**
 * Search by what happened in sessions: `command~`, `file~` and `output~`. These are no columns of a collection but
 * words of lines in an index beside it: each such comparison is asked of the index first, and the
 * sessions that were found take its place (Search.found).
 */
import { type Search, textOf } from './bind.ts'
import { spanOf } from './fields.ts'
import { type Comparison, type Expression, SearchError } from './grammar.ts'

/** What is searched of a session. */
export const CONTENT_FIELDS = ['command', 'file', 'output'] as const
export type ContentField = (typeof CONTENT_FIELDS)[number]

/** Letters or digits of the beginning of a word before `*`: shorter ones would be most words there are. */
export const MIN_BEGINNING = 2

/** Words that stand next to each other; the last one may go on. */
export interface Phrase {
  text: string
  isBeginning: boolean
}

/** Holds for a line in which all phrases occur. */
export interface ContentTest {
  field: ContentField
  phrases: Phrase[]
}

const WORD = /[\p{L}\p{N}]/u
const LAST_WORD = /[\p{L}\p{N}]+$/u

export function isContentField(field: string): field is ContentField {
  return (CONTENT_FIELDS as readonly string[]).includes(field)
}

/** The comparisons with a content field, in their order. */
export function contentComparisons(expression: Expression): Comparison[] {
  if (expression.type === 'comparison') return isContentField(expression.field) ? [expression] : []
  return expression.terms.flatMap(contentComparisons)
}

/** @throws SearchError for `=`, and for a value without a word in it */
export function contentTestOf(comparison: Comparison, variables: Search['variables']): ContentTest {
  const { field, operator, at } = comparison
  if (!isContentField(field)) throw new TypeError(`${field} is no content field`)
  if (operator !== '~') throw new SearchError('value', at.operator, `"~" for "${field}"`, '"="')
  const pieces = ['']
  for (const piece of comparison.value) {
    if (piece.type === 'wildcard') pieces.push('')
    else pieces[pieces.length - 1] += textOf(piece, comparison, variables)
  }
  const phrases = phrasesOf(pieces)
  if (typeof phrases === 'string') throw new SearchError('value', at.value, phrases, `"${pieces.join('*')}"`)
  return { field, phrases }
}

/** The phrases of a value that was split at its `*`; what was expected, as text, when there is none in it. */
export function phrasesOf(pieces: readonly string[]): Phrase[] | string {
  const phrases: Phrase[] = []
  for (const [index, text] of pieces.entries()) {
    if (!WORD.test(text)) continue
    const last = LAST_WORD.exec(text)?.[0]
    const isBeginning = last !== undefined && index < pieces.length - 1
    if (isBeginning && last.length < MIN_BEGINNING) {
      return `at least ${MIN_BEGINNING} letters or digits before "*"`
    }
    phrases.push({ text, isBeginning })
  }
  return phrases.length > 0 ? phrases : 'a word'
}

/**
 * When a session has to have begun so that the search can find it, in milliseconds, `to` excluded; undefined: at any
 * time. It is a help to those who look elsewhere first, and says no more than the conditions that all have to hold.
 */
export function spanOfBegin({ expression, variables }: Search): { from: number; to: number } | undefined {
  const terms = expression.type === 'and' ? expression.terms : [expression]
  for (const term of terms) {
    if (term.type !== 'comparison' || term.field !== 'begin' || term.operator !== '~') continue
    const pieces = term.value.at(-1)?.type === 'wildcard' ? term.value.slice(0, -1) : term.value
    const span = spanOf(pieces.map((piece) => textOf(piece, term, variables)).join(''))
    if (span) return span
  }
  return undefined
}

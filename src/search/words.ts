/**
 * Search by session content: `command~`, `file~` and `output~`. These are no columns of a collection but
 * words of lines in an index beside it: the index evaluates each such comparison first, and the found
 * sessions replace it (Search.found).
 */
import { bind, type Search, textOf } from './bind.ts'
import { type Comparison, type Expression, SearchError } from './grammar.ts'

/** Searchable content of a session. */
export const CONTENT_FIELDS = ['command', 'file', 'output'] as const
export type ContentField = (typeof CONTENT_FIELDS)[number]

/** Letters or digits required before `*` at the end of a word: shorter beginnings would match most words. */
export const MIN_BEGINNING = 2

/** Adjacent words; the last one may be the beginning of a word. */
export interface Phrase {
  text: string
  isBeginning: boolean
}

/** Matches a line that contains all phrases. */
export interface ContentTest {
  field: ContentField
  phrases: Phrase[]
}

const WORD = /[\p{L}\p{N}]/u
const LAST_WORD = /[\p{L}\p{N}]+$/u

export function isContentField(field: string): field is ContentField {
  return (CONTENT_FIELDS as readonly string[]).includes(field)
}

/** Returns the comparisons with a content field, in their order. */
export function contentComparisons(expression: Expression): Comparison[] {
  if (expression.type === 'comparison') return isContentField(expression.field) ? [expression] : []
  return expression.terms.flatMap(contentComparisons)
}

/** @throws SearchError for `=`, and for a value without a word in it */
export function contentTestOf(comparison: Comparison, variables: Search['variables']): ContentTest {
  const { field, operator, at } = comparison
  if (!isContentField(field)) throw new TypeError(`${field} is no content field`)
  if (operator !== '~') throw new SearchError('value', at.operator, `"~" for "${field}"`, `"${operator}"`)
  const pieces = ['']
  for (const piece of comparison.value) {
    if (piece.type === 'wildcard') pieces.push('')
    else pieces[pieces.length - 1] += textOf(piece, comparison, variables)
  }
  const phrases = phrasesOf(pieces)
  if (typeof phrases === 'string') throw new SearchError('value', at.value, phrases, `"${pieces.join('*')}"`)
  return { field, phrases }
}

/**
 * Returns the phrases of a value that was split at its `*`, or the expected input, as text, if it contains
 * none.
 */
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
 * Returns the span, in milliseconds, `to` excluded, in which a matching session must have begun, or undefined
 * if any time is possible. It only narrows a search elsewhere, and follows from the conditions that must all
 * be met.
 */
export function spanOfBegin({ expression, variables }: Search): { from: number; to: number } | undefined {
  const terms = expression.type === 'and' ? expression.terms : [expression]
  const fields = { begin: { kind: 'time' } } as const
  let span: { from: number; to: number } | undefined
  for (const term of terms) {
    if (term.type !== 'comparison' || term.field !== 'begin') continue
    const bound = bind({ expression: term, variables }, fields)
    if (bound.type !== 'test' || bound.test.type !== 'within') continue
    const { from = 0, to = Number.MAX_SAFE_INTEGER } = bound.test
    span = { from: Math.max(from, span?.from ?? 0), to: Math.min(to, span?.to ?? Number.MAX_SAFE_INTEGER) }
  }
  return span
}

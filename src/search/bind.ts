/**
 * Binds a syntax tree to a collection's fields and the caller's variables: returns the condition that an
 * object has to meet. All faults of an expression are found here or before; the condition can be compiled to
 * SQL (store/searchable.ts) or evaluated on an object (evaluate.ts), with the same result.
 */
import { equalForm, type Fields, type Kind, likeForm, spanOf, timeOf } from './fields.ts'
import { type Comparison, type Expression, type Order, SearchError } from './grammar.ts'

/** Value of `${name}`. Undefined if the name is known, but this caller has no value for it. */
export type Variables = Readonly<Record<string, string | undefined>>

/** A search in a collection. */
export interface Search {
  expression: Expression
  variables: Variables
  /** Results of comparisons that were evaluated elsewhere (words.ts): ids of the matching objects. */
  found?: ReadonlyMap<Comparison, readonly string[]>
}

export type Test =
  /** No value, an empty text, or an empty list. */
  | { type: 'empty' }
  /** Value in the kind's form for `=`; times in milliseconds. */
  | { type: 'equals'; value: string | number | boolean }
  /**
   * Texts in the kind's form for `~`, in this order, with any text between them: two or more, `''` at an open
   * end.
   */
  | { type: 'like'; parts: string[] }
  /** Integers and times from `from` until before `to`; one of them may be open. */
  | { type: 'within'; from?: number; to?: number }
  /** Any of these values, in the kind's form for `=`. */
  | { type: 'among'; values: readonly string[] }

export type Condition =
  | { type: 'and' | 'or'; terms: Condition[] }
  | { type: 'test'; field: string; kind: Kind; test: Test }

const INTEGER = /^-?\d{1,15}$/

/** @throws SearchError for an unknown field or variable, and for a value that the field cannot have */
export function bind(search: Search, fields: Fields): Condition {
  const { expression, variables, found } = search
  if (expression.type !== 'comparison') {
    const terms = expression.terms.map((term) => bind({ ...search, expression: term }, fields))
    return { type: expression.type, terms }
  }
  const values = found?.get(expression)
  if (values) return { type: 'test', field: 'id', kind: 'id', test: { type: 'among', values } }
  const field = Object.hasOwn(fields, expression.field) ? fields[expression.field] : undefined
  if (!field) {
    const known = `one of the fields ${Object.keys(fields).join(', ')}`
    throw new SearchError('field', expression.at.field, known, `"${expression.field}"`)
  }
  const { kind } = field
  return { type: 'test', field: expression.field, kind, test: testOf(expression, kind, variables) }
}

function testOf(comparison: Comparison, kind: Kind, variables: Variables): Test {
  const { operator } = comparison
  if (operator === '=') return equals(comparison, kind, variables)
  if (operator === '~') return like(comparison, kind, variables)
  return ordered(comparison, operator, kind, variables)
}

function ordered(comparison: Comparison, order: Order, kind: Kind, variables: Variables): Test {
  if (kind !== 'integer' && kind !== 'time') {
    const operators = kind === 'flag' ? '"="' : '"=" or "~"'
    throw new SearchError(
      'value',
      comparison.at.operator,
      `${operators} for "${comparison.field}"`,
      `"${order}"`,
    )
  }
  const text = comparison.value.map((piece) => textOf(piece, comparison, variables)).join('')
  const span = kind === 'integer' ? integerSpan(text) : timeSpan(text)
  if (!span) {
    const expected =
      kind === 'integer' ? 'an integer' : 'a time, or the beginning of one, such as 2031-12-31T23'
    throw badValue(comparison, expected, text)
  }
  switch (order) {
    case '<':
      return { type: 'within', to: span.from }
    case '<=':
      return { type: 'within', to: span.to }
    case '>':
      return { type: 'within', from: span.to }
    case '>=':
      return { type: 'within', from: span.from }
  }
}

interface Span {
  from: number
  to: number
}

function integerSpan(text: string): Span | undefined {
  return INTEGER.test(text) ? { from: Number(text), to: Number(text) + 1 } : undefined
}

/** Returns the millisecond of a time, or all those that begin so: `begin>2031-06` is after that month. */
export function timeSpan(text: string): Span | undefined {
  const time = timeOf(text)
  return time === undefined ? spanOf(text) : { from: time, to: time + 1 }
}

function equals(comparison: Comparison, kind: Kind, variables: Variables): Test {
  const text = comparison.value.map((piece) => textOf(piece, comparison, variables)).join('')
  switch (kind) {
    case 'flag':
      if (text !== 'true' && text !== 'false') throw badValue(comparison, 'true or false', text)
      return { type: 'equals', value: text === 'true' }
    case 'integer':
      if (!INTEGER.test(text)) throw badValue(comparison, 'an integer', text)
      return { type: 'equals', value: Number(text) }
    case 'time': {
      if (text === '') return { type: 'empty' }
      const value = timeOf(text)
      if (value === undefined) throw badValue(comparison, 'a time such as 2031-12-31T23:59:59Z', text)
      return { type: 'equals', value }
    }
    default:
      return text === '' ? { type: 'empty' } : { type: 'equals', value: equalForm(kind, text) }
  }
}

function like(comparison: Comparison, kind: Kind, variables: Variables): Test {
  if (kind === 'flag' || kind === 'integer')
    throw new SearchError('value', comparison.at.operator, `"=" for "${comparison.field}"`, '"~"')
  if (kind === 'time') {
    const pieces =
      comparison.value.at(-1)?.type === 'wildcard' ? comparison.value.slice(0, -1) : comparison.value
    const text = pieces.map((piece) => textOf(piece, comparison, variables)).join('')
    const span = spanOf(text)
    if (!span) throw badValue(comparison, 'the beginning of a time such as 2031-12 or 2031-12-31T23', text)
    return { type: 'within', ...span }
  }
  const parts = ['']
  for (const piece of comparison.value) {
    if (piece.type === 'wildcard') parts.push('')
    else parts[parts.length - 1] += textOf(piece, comparison, variables)
  }
  const folded = parts.map((part) => likeForm(kind, part))
  return { type: 'like', parts: folded.length === 1 ? ['', ...folded, ''] : folded }
}

/** Returns the text of a value's piece. @throws SearchError for a variable that the caller does not have */
export function textOf(piece: Comparison['value'][number], { at }: Comparison, variables: Variables): string {
  if (piece.type === 'text') return piece.text
  if (piece.type === 'wildcard') return '*'
  const { name } = piece
  if (!Object.hasOwn(variables, name)) {
    const known = Object.keys(variables).map((one) => `\${${one}}`)
    throw new SearchError('value', at.value, `one of ${known.join(', ')}`, `"\${${name}}"`)
  }
  const value = variables[name]
  if (value === undefined)
    throw new SearchError(
      'value',
      at.value,
      'a variable that you have',
      `"\${${name}}", which stands for nothing`,
    )
  return value
}

function badValue({ at, field }: Comparison, expected: string, found: string): SearchError {
  const text = found.length > 40 ? `${found.slice(0, 40)}…` : found
  return new SearchError('value', at.value, `${expected} for "${field}"`, `"${text}"`)
}

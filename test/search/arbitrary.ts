/** Random syntax trees and their text. */
import fc from 'fast-check'
import type { Comparison, Expression, Operator, Piece } from '../../src/search/grammar.ts'

const NOWHERE = { field: 0, operator: 0, value: 0 }

/** Returns the tree without offsets. */
export function bare(expression: Expression): unknown {
  if (expression.type !== 'comparison') return { ...expression, terms: expression.terms.map(bare) }
  const { at: _, ...rest } = expression
  return rest
}

/** Returns text that parses to the tree. */
export function format(expression: Expression): string {
  if (expression.type === 'comparison') {
    return `${expression.field} ${expression.operator} ${valueText(expression)}`
  }
  const inner = expression.terms.map((term) => {
    const bracketed = term.type === 'or' || (term.type === 'and' && expression.type === 'and')
    return bracketed ? `(${format(term)})` : format(term)
  })
  return inner.join(expression.type === 'and' ? ' && ' : ' || ')
}

function valueText({ value }: Comparison): string {
  return value.length === 0 ? '""' : value.map(pieceText).join('')
}

function pieceText(piece: Piece): string {
  if (piece.type === 'wildcard') return '*'
  if (piece.type === 'variable') return `\${${piece.name}}`
  return `"${piece.text.replace(/["\\*]/g, '\\$&')}"`
}

export interface Values {
  fields: readonly string[]
  /** Pieces of values to look for in a field. */
  texts: (field: string) => fc.Arbitrary<string>
  variables: readonly string[]
  /** Default: `=` and `~`. */
  operators?: (field: string) => Operator[]
}

export function expressions(
  { fields, texts, variables, operators = () => ['=', '~'] }: Values,
  maxDepth = 4,
): fc.Arbitrary<Expression> {
  const variable = fc.constantFrom(...variables).map((name): Piece => ({ type: 'variable', name }))
  const wildcard = fc.constant<Piece>({ type: 'wildcard' })
  const leaf = fc
    .constantFrom(...fields)
    .chain((field) => fc.tuple(fc.constant(field), fc.constantFrom(...operators(field))))
    .chain(([field, operator]): fc.Arbitrary<Expression> => {
      const text = texts(field)
        .filter((one) => one !== '')
        .map((one): Piece => ({ type: 'text', text: one }))
      const pieces = {
        exact: fc.oneof({ weight: 9, arbitrary: text }, variable),
        pattern: fc.oneof({ weight: 5, arbitrary: text }, { weight: 4, arbitrary: wildcard }, variable),
      }
      return fc
        .array(pieces[operator === '~' ? 'pattern' : 'exact'], { maxLength: operator === '~' ? 3 : 1 })
        .map((value) => ({ type: 'comparison', field, operator, value: merged(value), at: NOWHERE }))
    })
  const { node } = fc.letrec<{ node: Expression; joined: Expression }>((tie) => ({
    node: fc.oneof({ maxDepth, withCrossShrink: true }, leaf, tie('joined')),
    joined: fc.record({
      type: fc.constantFrom('and' as const, 'or' as const),
      terms: fc.array(tie('node'), { minLength: 2, maxLength: 3 }),
    }),
  }))
  return node
}

function merged(pieces: readonly Piece[]): Piece[] {
  const result: Piece[] = []
  for (const piece of pieces) {
    const last = result.at(-1)
    if (last?.type === 'text' && piece.type === 'text') {
      result[result.length - 1] = { type: 'text', text: last.text + piece.text }
    } else if (!(last?.type === 'wildcard' && piece.type === 'wildcard')) result.push(piece)
  }
  return result
}

/** Random syntax trees, their text, and a second opinion on what they mean. */
import fc from 'fast-check'
import type { Comparison, Expression, Piece } from '../../src/search/grammar.ts'

type Bare = Omit<Comparison, 'at'> & { at?: unknown }

const NOWHERE = { field: 0, operator: 0, value: 0 }

/** The tree without offsets. */
export function bare(expression: Expression): unknown {
  if (expression.type !== 'comparison') return { ...expression, terms: expression.terms.map(bare) }
  const { at: _, ...rest } = expression
  return rest satisfies Bare
}

/** Text that parses to the tree. */
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
  if (value.length === 0) return '""'
  return value.map(pieceText).join('')
}

function pieceText(piece: Piece): string {
  if (piece.type === 'wildcard') return '*'
  if (piece.type === 'variable') return `\${${piece.name}}`
  return `"${piece.text.replace(/["\\*]/g, '\\$&')}"`
}

export interface Values {
  fields: readonly string[]
  texts: fc.Arbitrary<string>
  variables: readonly string[]
  /** Fields that `~` can be asked of; all unless named. */
  likeable?: readonly string[]
}

export function expressions(values: Values, maxDepth = 4): fc.Arbitrary<Expression> {
  const plain = values.texts.filter((text) => text !== '').map((text): Piece => ({ type: 'text', text }))
  const variable = fc.constantFrom(...values.variables).map((name): Piece => ({ type: 'variable', name }))
  const wildcard = fc.constant<Piece>({ type: 'wildcard' })
  const comparison = (operator: '=' | '~', fields: readonly string[], piece: fc.Arbitrary<Piece>) =>
    fc.record({
      type: fc.constant('comparison' as const),
      field: fc.constantFrom(...fields),
      operator: fc.constant(operator),
      value: fc.array(piece, { maxLength: 4 }).map(merged),
      at: fc.constant(NOWHERE),
    })
  const leaf = fc.oneof(
    comparison('=', values.fields, fc.oneof({ weight: 5, arbitrary: plain }, variable)),
    comparison(
      '~',
      values.likeable ?? values.fields,
      fc.oneof({ weight: 4, arbitrary: plain }, { weight: 3, arbitrary: wildcard }, variable),
    ),
  )
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

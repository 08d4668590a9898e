/** Evaluates an expression in the plainest way, independently of src/search and SQL. */
import type { Kind } from '../../src/search/fields.ts'
import type { Comparison, Expression } from '../../src/search/grammar.ts'

export function naive(
  expression: Expression,
  view: object,
  kinds: Readonly<Record<string, { kind: Kind }>>,
  variables: Readonly<Record<string, string>>,
): boolean {
  if (expression.type !== 'comparison') {
    const results = expression.terms.map((term) => naive(term, view, kinds, variables))
    return expression.type === 'and' ? !results.includes(false) : results.includes(true)
  }
  const { kind } = kinds[expression.field]!
  const values = valuesAt(view, expression.field)
  if (expression.operator === '=') {
    const wanted = expression.value.map((piece) => text(piece, variables)).join('')
    if (wanted === '') return values.every((value) => value === '')
    return values.some((value) => fold(kind, String(value), '=') === fold(kind, wanted, '='))
  }
  const parts = expression.value.map((piece) =>
    piece.type === 'wildcard' ? '[^]*' : escaped(fold(kind, text(piece, variables), '~')),
  )
  const whole = expression.value.some((piece) => piece.type === 'wildcard')
  const pattern = new RegExp(whole ? `^${parts.join('')}$` : parts.join(''))
  return values.some((value) => value !== '' && pattern.test(fold(kind, String(value), '~')))
}

/** Returns the values of a field, `object.field` within an object, one by one. */
export function valuesAt(view: object, field: string): unknown[] {
  const value = field.split('.').reduce<unknown>(inner, view)
  return (Array.isArray(value) ? value : [value]).filter((one) => one !== null && one !== undefined)
}

function inner(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((member) => inner(member, name))
  return (value as Record<string, unknown> | null)?.[name]
}

function text(piece: Comparison['value'][number], variables: Readonly<Record<string, string>>): string {
  if (piece.type === 'variable') return variables[piece.name]!
  return piece.type === 'text' ? piece.text : '*'
}

function fold(kind: Kind, value: string, operator: '=' | '~'): string {
  const lower = [...value].map((one) => (one >= 'A' && one <= 'Z' ? one.toLowerCase() : one)).join('')
  if (kind === 'name') return value.normalize('NFC').toUpperCase().toLowerCase().normalize('NFC')
  if (kind === 'time') return String(Date.parse(value))
  return operator === '=' && kind === 'text' ? value : lower
}

const escaped = (part: string): string => part.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

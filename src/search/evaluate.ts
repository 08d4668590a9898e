/** Evaluates a condition on an object in the API's form. */
import type { Condition, Test } from './bind.ts'
import { equalForm, type Kind, likeForm } from './fields.ts'

export function meets(object: object, condition: Condition): boolean {
  if (condition.type !== 'test') {
    const one = (term: Condition): boolean => meets(object, term)
    return condition.type === 'and' ? condition.terms.every(one) : condition.terms.some(one)
  }
  const values = valuesAt(object, condition.field.split('.'))
  const { kind, test } = condition
  if (test.type === 'empty') return values.every((value) => value === '')
  return values.some((value) => passes(value, kind, test))
}

/**
 * Returns whether the text contains the parts in this order: the first at its beginning, the last at its end.
 * The empty text matches nothing.
 */
export function isLike(text: string, parts: readonly string[]): boolean {
  if (text === '') return false
  const [first = '', ...others] = parts
  const last = others.pop() ?? ''
  if (!text.startsWith(first) || !text.endsWith(last)) return false
  let at = first.length
  for (const part of others) {
    const found = text.indexOf(part, at)
    if (found === -1) return false
    at = found + part.length
  }
  return at + last.length <= text.length
}

/** Returns all values at the path: the members of lists one by one, and nothing for null. */
function valuesAt(value: unknown, path: readonly string[]): unknown[] {
  if (value === null || value === undefined) return []
  if (Array.isArray(value)) return value.flatMap((member) => valuesAt(member, path))
  const [name, ...rest] = path
  if (name === undefined) return [value]
  return typeof value === 'object' && Object.hasOwn(value, name)
    ? valuesAt((value as Record<string, unknown>)[name], rest)
    : []
}

function passes(value: unknown, kind: Kind, test: Exclude<Test, { type: 'empty' }>): boolean {
  if (test.type === 'among') return test.values.includes(String(value))
  if (typeof value === 'number' && test.type === 'within') return isWithin(value, test)
  if (typeof value !== 'string') return test.type === 'equals' && value === test.value
  if (test.type === 'like') return isLike(likeForm(kind, value), test.parts)
  if (kind !== 'time') return test.type === 'equals' && equalForm(kind, value) === test.value
  const time = Date.parse(value)
  return test.type === 'equals' ? time === test.value : isWithin(time, test)
}

function isWithin(value: number, { from, to }: { from?: number; to?: number }): boolean {
  return (from === undefined || from <= value) && (to === undefined || value < to)
}

/** `subprotocols` in bodies. */
import { Type } from 'typebox'
import { RIGHTS, type Right, rightNamed } from '../../model/rights.ts'
import { fieldError } from '../http/errors.ts'
import { oneOf } from './fields.ts'

const NAMES = [...RIGHTS, 'SSH_SHELL_SESSION'] as const

export function rightsIn(description: string) {
  return Type.Array(oneOf(NAMES, 'right; SSH_SHELL_SESSION is another name of SSH_SHELL'), {
    maxItems: 64,
    description,
  })
}

/** Returns the named rights, aliases resolved, each once, in the catalogue's order. */
export function rightsOf(names: readonly string[]): Right[] {
  const rights = new Set<Right>()
  for (const [index, name] of names.entries()) {
    const right = rightNamed(name)
    if (!right) throw fieldError('invalid_field', `subprotocols/${index}`, `there is no right "${name}"`)
    rights.add(right)
  }
  return RIGHTS.filter((right) => rights.has(right))
}

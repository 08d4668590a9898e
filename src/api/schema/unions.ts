/**
 * Findings about a value of a union type. A validator reports why the value matches none of the branches; a
 * user needs the error in the branch that was meant.
 */
import type { TSchema } from 'typebox'

/** Place of a finding: JSON pointers into the schema (`#/…`) and into the value. */
export interface Place {
  schemaPath: string
  instancePath: string
}

/** Relevance of a finding in a branch of a union. */
export type Meaning =
  | { is: 'kept'; orNull: boolean }
  /** The finding is about a branch that was not meant. */
  | { is: 'dropped' }
  /** No branch was meant: the field that distinguishes them has another value, or is missing. */
  | { is: 'undecided'; field: string; values: readonly string[]; isMissing: boolean }

type Json = Readonly<Record<string, unknown>>

/** Keywords of a schema that describe parts of the value instead of the value itself. */
const DESCENDING = ['properties', 'items', 'additionalProperties']

/** Returns the relevance of a finding at this place for the sender of the value. */
export function meaningOf({ schemaPath, instancePath }: Place, root: TSchema, input: unknown): Meaning {
  const tokens = schemaPath.split('/').slice(1)
  const parts = instancePath.split('/').slice(1)
  const walked: string[] = []
  let schema: unknown = root
  let value = input
  let orNull = false
  while (tokens.length > 0) {
    const keyword = tokens.shift()!
    schema = memberOf(schema, keyword)
    if (keyword === 'anyOf') {
      const branches = schema as readonly Json[]
      const branch = tokens.shift()!
      const mark = markOf(branches)
      if (mark === undefined) {
        if (branches[Number(branch)]?.['type'] === 'null') return { is: 'dropped' }
        orNull = branches.some((one) => one['type'] === 'null')
      } else if (isObject(value)) {
        const given = value[mark] as string
        const meant = branches.findIndex((one) => constantsOf(one, mark).includes(given))
        if (meant === -1) {
          const values = branches.flatMap((one) => constantsOf(one, mark))
          const field = [...walked, mark].join('/')
          return { is: 'undecided', field, values, isMissing: !Object.hasOwn(value, mark) }
        }
        if (meant !== Number(branch)) return { is: 'dropped' }
      }
      schema = branches[Number(branch)]
    } else if (DESCENDING.includes(keyword)) {
      if (keyword === 'properties') schema = memberOf(schema, tokens.shift() ?? '')
      const part = parts.shift() ?? ''
      walked.push(part)
      value = memberOf(value, part)
    }
  }
  return { is: 'kept', orNull }
}

/** Returns the field that distinguishes the branches of a union: each of them has constant values for it. */
function markOf(branches: readonly Json[]): string | undefined {
  const [first] = branches
  const fields = Object.keys((first?.['properties'] as Json | undefined) ?? {})
  return fields.find((field) => branches.every((one) => constantsOf(one, field).length > 0))
}

function constantsOf(branch: Json, field: string): readonly string[] {
  const schema = (branch['properties'] as Readonly<Record<string, Json>> | undefined)?.[field]
  if (typeof schema?.['const'] === 'string') return [schema['const']]
  return (schema?.['enum'] as readonly string[] | undefined) ?? []
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
  return (value as Json)[name]
}

/**
 * Findings about a value that may be one of several things. A validator tells what keeps it from being any of them;
 * a person wants to know what is wrong with the one that was meant.
 */
import type { TSchema } from 'typebox'

/** Where a validator found something: JSON pointers into the schema (`#/…`) and into the value. */
export interface Place {
  schemaPath: string
  instancePath: string
}

/** What a finding is worth when it lies in a branch of a union. */
export type Meaning =
  | { is: 'kept'; orNull: boolean }
  /** It is about a branch that was not meant. */
  | { is: 'dropped' }
  /** No branch was meant: the field that tells them apart has another value, or is missing. */
  | { is: 'undecided'; field: string; values: readonly string[]; isMissing: boolean }

type Json = Readonly<Record<string, unknown>>

/** Keywords of a schema under which the value's own parts are described, and not itself. */
const DESCENDING = ['properties', 'items', 'additionalProperties']

/** What a finding at this place means to somebody who sent this value. */
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

/** The field that tells the branches of a union apart: in each of them it has to have values of its own. */
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

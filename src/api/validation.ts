/** One schema validates, types and documents: here TypeBox's compiled check, and its findings as our details. */
import type { FastifySchemaCompiler } from 'fastify'
import { type TSchema, Type } from 'typebox'
import { Compile } from 'typebox/compile'
import { ApiError, type ErrorDetail } from './errors.ts'

/** Findings in one answer. */
const MAX_DETAILS = 20
const INTEGER = /^-?\d{1,9}$/

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const flawOf = flawFinder(schema)
  const integers = httpPart === 'querystring' ? integersOf(schema) : []
  return (input: unknown) => {
    const value = integers.length > 0 ? withIntegers(input, integers) : input
    const error = flawOf(value)
    return error ? { error } : { value }
  }
}

/** What is wrong with a value under a schema, as the error to answer with; undefined: nothing. */
export function flawFinder(schema: TSchema): (value: unknown) => ApiError | undefined {
  const validator = Compile(schema)
  return (value) => (validator.Check(value) ? undefined : finding(validator.Errors(value)))
}

/** Query parameters are text: those that the schema wants as integers become such, the others stay. */
function withIntegers(input: unknown, names: readonly string[]): unknown {
  const query = { ...(input as Record<string, unknown>) }
  for (const name of names) {
    const text = query[name]
    if (typeof text === 'string' && INTEGER.test(text)) query[name] = Number(text)
  }
  return query
}

function integersOf(schema: TSchema): string[] {
  if (!Type.IsObject(schema)) return []
  return Object.entries(schema.properties).flatMap(([name, property]) =>
    Type.IsInteger(property) ? [name] : [],
  )
}

interface Finding {
  keyword: string
  instancePath: string
  params: object
  message: string
}

function finding(errors: readonly Finding[]): ApiError {
  const unknown = errors.flatMap((error) =>
    namesIn(error, 'additionalProperties').map((name) => field(error, name)),
  )
  if (unknown.length > 0)
    return new ApiError('unknown_field', unknown.slice(0, MAX_DETAILS).map(unknownField))
  const details = errors
    .filter((error) => error.keyword !== 'anyOf' && error.keyword !== 'boolean')
    .flatMap((error): ErrorDetail[] => {
      const missing = namesIn(error, 'requiredProperties')
      if (missing.length > 0)
        return missing.map((name) => ({ field: field(error, name), message: 'this field is required' }))
      return [detail(field(error), error.message)]
    })
  return new ApiError('invalid_field', details.slice(0, MAX_DETAILS))
}

const unknownField = (name: string): ErrorDetail => ({ field: name, message: 'there is no such field here' })

function detail(name: string, message: string): ErrorDetail {
  return name === '' ? { message } : { field: name, message }
}

function namesIn(error: Finding, parameter: string): string[] {
  const names = (error.params as Record<string, unknown>)[parameter]
  return Array.isArray(names) ? names.map(String) : []
}

/** `/credentials/0` and `type` → `credentials/0/type`. */
function field(error: Finding, name?: string): string {
  const path = error.instancePath.slice(1)
  if (name === undefined) return path
  return path === '' ? name : `${path}/${name}`
}

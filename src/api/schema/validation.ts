/**
 * One schema validates, types and documents: runs TypeBox's compiled check, and converts its findings to
 * details of errors.
 */
import type { FastifySchema, FastifySchemaCompiler } from 'fastify'
import { type TSchema, Type } from 'typebox'
import { Compile, type Validator } from 'typebox/compile'
import { Settings } from 'typebox/system'
import { ApiError, type ErrorDetail } from '../http/errors.ts'
import { errorResponses } from '../http/failures.ts'
import { characterFlaws } from './characters.ts'
import { exact } from './fields.ts'
import { type Meaning, meaningOf } from './unions.ts'

/** Limit of findings in one answer. */
const MAX_DETAILS = 20
/** Limit of findings before filtering: those in branches of a union that were not meant are dropped. */
const MAX_FINDINGS = 200
const INTEGER = /^-?\d{1,9}$/
const DECIMAL = /^-?\d{1,9}(\.\d{1,6})?$/

Settings.Set({ maxErrors: MAX_FINDINGS })

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const isQuery = httpPart === 'querystring'
  const flawOf = httpPart === 'body' ? bodyFlawFinder(schema) : flawFinder(schema, isQuery)
  const numbers = isQuery ? numbersOf(schema) : []
  return (input: unknown) => {
    const value = numbers.length > 0 ? withNumbers(input, numbers) : input
    const error = flawOf(value)
    return error ? { error } : { value }
  }
}

type FlawFinder = (value: unknown) => ApiError | undefined

/**
 * Returns a function that checks a body by the schema and returns the error to send, or undefined if the body
 * is valid.
 */
export function bodyFlawFinder(schema: TSchema): FlawFinder {
  const flawOf = flawFinder(schema, false)
  return (body) => {
    const flaw = flawOf(body)
    if (flaw) return flaw
    const details = characterFlaws(body)
    return details.length > 0 ? new ApiError('invalid_field', details.slice(0, MAX_DETAILS)) : undefined
  }
}

/** Compiles at the first value: a start would spend a third of a second on checks of which few are asked for. */
function flawFinder(schema: TSchema, isQuery: boolean): FlawFinder {
  let validator: Validator | undefined
  const what = isQuery ? 'parameter' : 'field'
  return (value) => {
    validator ??= Compile(schema)
    return validator.Check(value) ? undefined : finding(validator.Errors(value), { schema, value, what })
  }
}

const NO_QUERY = exact({})

/**
 * Returns a route's schema; without declared query parameters it accepts none. An unknown parameter might be
 * meant to limit the request (`dry_run=true`), so it must not be ignored.
 */
export function withQuery(schema: FastifySchema = {}): FastifySchema {
  const { querystring = NO_QUERY, response } = schema
  return { ...schema, querystring, response: { ...errorResponses(400), ...(response as object | undefined) } }
}

/** Converts query parameters, which are text, to numbers where the schema expects them. */
function withNumbers(input: unknown, numbers: readonly [name: string, pattern: RegExp][]): unknown {
  const query = { ...(input as Record<string, unknown>) }
  for (const [name, pattern] of numbers) {
    const text = query[name]
    if (typeof text === 'string' && pattern.test(text)) query[name] = Number(text)
  }
  return query
}

function numbersOf(schema: TSchema): [name: string, pattern: RegExp][] {
  if (!Type.IsObject(schema)) return []
  return Object.entries(schema.properties).flatMap(([name, property]): [string, RegExp][] => {
    if (Type.IsInteger(property)) return [[name, INTEGER]]
    return Type.IsNumber(property) ? [[name, DECIMAL]] : []
  })
}

interface Finding {
  keyword: string
  schemaPath: string
  instancePath: string
  params: object
  message: string
}

/** The checked part of a request. */
interface Subject {
  schema: TSchema
  value: unknown
  what: string
}

function finding(errors: readonly Finding[], { schema, value, what }: Subject): ApiError {
  const details: ErrorDetail[] = []
  const unknown: ErrorDetail[] = []
  for (const error of errors) {
    const meaning = meaningOf(error, schema, value)
    if (meaning.is === 'dropped') continue
    if (meaning.is === 'undecided') details.push(undecided(meaning))
    else if (isUnknownField(error))
      unknown.push({ field: field(error), message: `there is no such ${what} here` })
    else details.push(...detailsOf(error, meaning.orNull ? ', or null' : ''))
  }
  if (unknown.length > 0) return new ApiError('unknown_field', distinct(unknown))
  return new ApiError('invalid_field', distinct(details))
}

/** Findings that only summarize others, which are reported themselves. */
const SUMS = ['anyOf', 'boolean', 'additionalProperties']

function detailsOf(error: Finding, more: string): ErrorDetail[] {
  if (SUMS.includes(error.keyword)) return []
  const missing = listed(error, 'requiredProperties')
  if (missing.length > 0)
    return missing.map((name) => ({ field: field(error, name), message: 'this field is required' }))
  const allowed = listed(error, 'allowedValues')
  return [detail(field(error), `${allowed.length > 0 ? expected(allowed) : error.message}${more}`)]
}

function expected(values: readonly string[]): string {
  return `expected ${values.length > 1 ? 'one of ' : ''}${values.join(', ')}`
}

function undecided({ field, values, isMissing }: Extract<Meaning, { is: 'undecided' }>): ErrorDetail {
  return { field, message: isMissing ? `this field is required: ${expected(values)}` : expected(values) }
}

/** A property that meets `additionalProperties: false`. */
function isUnknownField({ keyword, schemaPath }: Finding): boolean {
  return keyword === 'boolean' && schemaPath.endsWith('/additionalProperties')
}

function detail(name: string, message: string): ErrorDetail {
  return name === '' ? { message } : { field: name, message }
}

/** Removes duplicates: branches of a union may have the same finding. */
function distinct(details: readonly ErrorDetail[]): ErrorDetail[] {
  const first = new Map(details.map((one) => [JSON.stringify(one), one]))
  return [...first.values()].slice(0, MAX_DETAILS)
}

function listed(error: Finding, parameter: string): string[] {
  const names = (error.params as Record<string, unknown>)[parameter]
  return Array.isArray(names) ? names.map(String) : []
}

/** Converts the pointer (RFC 6901) `/credentials/0` and `type` to `credentials/0/type`. */
function field(error: Finding, name?: string): string {
  const path = error.instancePath.slice(1).replaceAll('~1', '/').replaceAll('~0', '~')
  if (name === undefined) return path
  return path === '' ? name : `${path}/${name}`
}

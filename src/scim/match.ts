/** Whether a resource meets a filter. Attributes are those of the schema, so that no inherited name is ever read. */
import { nameKey } from '../model/names.ts'
import { badRequest } from './error.ts'
import type { Filter, Literal } from './filter.ts'
import { type Attribute, attributeAt, byName, type ResourceType } from './schema.ts'

export type Resource = Readonly<Record<string, unknown>>
type Test = (resource: Resource) => boolean
type Values = (resource: Resource) => readonly unknown[]
interface Meant {
  attribute: Attribute
  values: Values
}
/** Meaning of names at one place of a filter. */
interface Place {
  resolve: (path: string) => Meant | undefined
  /** Returns the test of a filter in brackets. */
  bracket: (filter: Extract<Filter, { kind: 'value' }>) => Test
}
type Compare = Extract<Filter, { kind: 'compare' }>

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)?$/

/**
 * Returns the test of a filter. An attribute that is not kept has no value; `isOfAll`: nor has one of another type of resource.
 * @throws ScimError `invalidFilter` for an attribute that does not exist, or an operator that does not fit it
 */
export function testOf(type: ResourceType, filter: Filter, isOfAll = false): Test {
  const foundAt = (path: string) => {
    const found = attributeAt(type, path)
    if (found === 'unkept' || (found === 'unknown' && isOfAll)) return undefined
    if (found === 'unknown') throw invalid(`the attribute ${path} does not exist in ${type}`)
    return found
  }
  return compile(filter, {
    resolve: (path) => {
      const found = foundAt(path)
      if (!found) return undefined
      const { attribute, part } = found
      const all: Values = (resource) => listOf(resource[attribute.name])
      // A complex attribute of several values is compared by its part `value` (RFC 7643 section 2.4).
      const meant =
        part ?? (attribute.multiValued ? byName(attribute.subAttributes ?? [], 'value') : undefined)
      return meant ? { attribute: meant, values: partOf(all, meant.name) } : { attribute, values: all }
    },
    bracket: ({ path, of, about }) => {
      const found = foundAt(path)
      if (!found) return () => false
      const { attribute, part } = found
      if (part || !attribute.subAttributes)
        throw invalid(`brackets stand behind an attribute with parts, not ${path}`)
      const isMet = testOfValue(attribute, of)
      const isMetToo = about && testOfValue(attribute, about)
      return (resource) =>
        listOf(resource[attribute.name]).some(
          (value) => isMet(value as Resource) && (!isMetToo || isMetToo(value as Resource)),
        )
    },
  })
}

/**
 * Returns the test of a filter in brackets, for one value of the attribute.
 * @throws ScimError `invalidFilter`
 */
export function testOfValue(attribute: Attribute, filter: Filter): Test {
  return compile(filter, {
    resolve: (path) => {
      const part = byName(attribute.subAttributes ?? [], path)
      if (!part) throw invalid(`${attribute.name} has no part ${path}`)
      return { attribute: part, values: (value) => listOf(value[part.name]) }
    },
    bracket: ({ path }) => {
      throw invalid(`brackets stand in no brackets: ${path}`)
    },
  })
}

function compile(filter: Filter, place: Place): Test {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const tests = filter.of.map((one) => compile(one, place))
      return filter.kind === 'and'
        ? (resource) => tests.every((test) => test(resource))
        : (resource) => tests.some((test) => test(resource))
    }
    case 'not': {
      const test = compile(filter.of, place)
      return (resource) => !test(resource)
    }
    case 'present': {
      const values = place.resolve(filter.path)?.values ?? (() => [])
      return (resource) => values(resource).some(isValue)
    }
    case 'value':
      return place.bracket(filter)
    case 'compare':
      return comparison(filter, place.resolve(filter.path))
  }
}

function comparison({ path, operator, value }: Compare, meant: Meant | undefined): Test {
  if (!meant) return () => operator === 'ne'
  const { attribute, values } = meant
  if (attribute.type === 'complex') throw invalid(`${path} has parts: compare one of them`)
  if (operator === 'eq' || operator === 'ne') {
    const isEqual = value === null ? undefined : equality(attribute, value)
    const has: Test = (resource) =>
      isEqual ? values(resource).some(isEqual) : !values(resource).some(isValue)
    return operator === 'eq' ? has : (resource) => !has(resource)
  }
  if (typeof value !== 'string' || attribute.type === 'boolean')
    throw invalid(`${operator} compares texts and times, not ${path} with ${JSON.stringify(value)}`)
  const key = keyOf(attribute)
  const wanted = key(value)
  const isMet = {
    co: (one: string) => one.includes(wanted),
    sw: (one: string) => one.startsWith(wanted),
    ew: (one: string) => one.endsWith(wanted),
    gt: (one: string) => one > wanted,
    ge: (one: string) => one >= wanted,
    lt: (one: string) => one < wanted,
    le: (one: string) => one <= wanted,
  }[operator]
  return (resource) => values(resource).some((one) => typeof one === 'string' && isMet(key(one)))
}

function equality(attribute: Attribute, value: Exclude<Literal, null>): (one: unknown) => boolean {
  if (attribute.type === 'boolean') {
    const wanted = truthOf(value)
    if (wanted === undefined)
      throw invalid(`${attribute.name} is true or false, not ${JSON.stringify(value)}`)
    return (one) => one === wanted
  }
  if (typeof value !== 'string')
    throw invalid(`${attribute.name} is a text, not ${JSON.stringify(value)}: put it in double quotes`)
  const key = keyOf(attribute)
  const wanted = key(value)
  return (one) => typeof one === 'string' && key(one) === wanted
}

/** Returns the form in which values of the attribute compare. */
function keyOf({ type, caseExact }: Attribute): (text: string) => string {
  if (type === 'dateTime') return timeKey
  return caseExact ? (text) => text : nameKey
}

function timeKey(text: string): string {
  const time = ISO.test(text)
    ? Date.parse(/[Z+-]\d*:?\d*$/.test(text.slice(19)) ? text : `${text}Z`)
    : Number.NaN
  if (Number.isNaN(time))
    throw invalid(`expected a time as in 2026-01-31T12:00:00Z, got ${JSON.stringify(text)}`)
  return new Date(time).toISOString()
}

/** Returns a boolean as providers write it: true, "true" and "True"; undefined if it is none. */
export function truthOf(value: unknown): boolean | undefined {
  if (typeof value === 'boolean') return value
  const key = typeof value === 'string' ? value.toLowerCase() : undefined
  return key === 'true' ? true : key === 'false' ? false : undefined
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined ? [] : [value]

const partOf =
  (all: Values, name: string): Values =>
  (resource) =>
    all(resource).flatMap((one) =>
      typeof one === 'object' && one !== null ? listOf((one as Resource)[name]) : [],
    )

const isValue = (value: unknown): boolean => value !== undefined && value !== null && value !== ''

const invalid = (message: string) => badRequest('invalidFilter', message)

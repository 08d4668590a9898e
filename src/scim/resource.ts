/** Users and groups as bodies have them: read by the schema, so that nothing else of a body gets further. */
import { hasUnprintable } from '../model/names.ts'
import { badRequest } from './error.ts'
import { type Resource, truthOf } from './match.ts'
import { type Attribute, attributesOf, type ResourceType, schemaOf } from './schema.ts'

/** Characters of one text, and values of an attribute other than `members`. */
export const MAX_VALUE = 1024
export const MAX_VALUES = 50
/** Characters of an external id, which is looked up. */
export const MAX_EXTERNAL_ID = 512

export interface UserContent {
  userName: string
  externalId?: string
  active: boolean
  /** The other attributes, by their names in the schema. */
  more: Resource
}

export interface GroupContent {
  displayName: string
  externalId?: string
}

/** @throws ScimError `invalidValue`, `invalidSyntax` */
export function readUser(body: unknown): UserContent {
  const { userName, externalId, active, ...more } = read('User', body)
  return {
    userName: required('userName', userName),
    ...externalIdOf(externalId),
    active: active !== false,
    more,
  }
}

/** `members` are the ids of its users. @throws ScimError `invalidValue`, `invalidSyntax` */
export function readGroup(body: unknown): GroupContent & { members: string[] } {
  const { displayName, externalId } = read('Group', body)
  const members = byNameIn(objectOf(body, 'the body'), 'members')
  return {
    displayName: required('displayName', displayName),
    ...externalIdOf(externalId),
    members: members === undefined || members === null ? [] : memberIds(members),
  }
}

/** Returns the ids of members: `[{"value": ID}]`, or one of them alone. @throws ScimError `invalidValue` */
export function memberIds(value: unknown): string[] {
  const all = Array.isArray(value) ? value : [value]
  return all.map((one) => {
    const id = typeof one === 'string' ? one : byNameIn(objectOf(one, 'a member'), 'value')
    if (typeof id !== 'string' || id.length > MAX_VALUE)
      throw badRequest('invalidValue', 'expected the id of a user as the value of each member')
    return id
  })
}

/**
 * Returns the body's attributes that clients may set, by their names in the schema.
 * @throws ScimError `invalidValue` for a value of another type
 */
function read(type: ResourceType, body: unknown): Record<string, unknown> {
  const given = objectOf(body, 'the body')
  requireSchema(given, schemaOf(type))
  const result: Record<string, unknown> = {}
  for (const attribute of attributesOf(type)) {
    if (attribute.mutability === 'readOnly' || ['schemas', 'members'].includes(attribute.name)) continue
    const value = readValue(attribute, byNameIn(given, attribute.name))
    if (value !== undefined) result[attribute.name] = value
  }
  return result
}

/** Returns the value as the schema has it, or undefined for none. @throws ScimError `invalidValue` */
export function readValue(attribute: Attribute, value: unknown): unknown {
  if (value === undefined || value === null) return undefined
  if (!attribute.multiValued) return singleOf(attribute, onlyOf(value))
  const all = Array.isArray(value) ? value : [value]
  if (all.length > MAX_VALUES)
    throw badRequest(
      'invalidValue',
      `expected ${MAX_VALUES} values of ${attribute.name} at most, got ${all.length}`,
    )
  const values = all.flatMap((one) => singleOf(attribute, one) ?? [])
  const isPrimary = (one: unknown) => (one as Resource)['primary'] === true
  if (values.filter(isPrimary).length > 1)
    throw badRequest('invalidValue', `expected one primary value of ${attribute.name} at most`)
  return values.length > 0 ? values : undefined
}

/** Entra ID has sent values of simple attributes as `[{"$ref": null, "value": "x"}]`. */
function onlyOf(value: unknown): unknown {
  if (!Array.isArray(value) || value.length !== 1) return value
  const [one] = value as unknown[]
  return typeof one === 'object' && one !== null && 'value' in one ? one.value : one
}

function singleOf(attribute: Attribute, value: unknown): unknown {
  const { name, type, subAttributes } = attribute
  if (type === 'complex') {
    // A text alone stands for its part `value`.
    const given = typeof value === 'string' ? { value } : objectOf(value, name)
    const parts = (subAttributes ?? []).flatMap((part) => {
      const one = readValue(part, byNameIn(given, part.name))
      return one === undefined ? [] : [[part.name, one] as const]
    })
    return parts.length > 0 ? Object.fromEntries(parts) : undefined
  }
  if (type === 'boolean') {
    const truth = truthOf(value)
    if (truth === undefined)
      throw badRequest('invalidValue', `expected true or false as ${name}, got ${kindOf(value)}`)
    return truth
  }
  if (typeof value !== 'string')
    throw badRequest('invalidValue', `expected a text as ${name}, got ${kindOf(value)}`)
  if (value.length > MAX_VALUE)
    throw badRequest(
      'invalidValue',
      `expected ${MAX_VALUE} characters at most in ${name}, got ${value.length}`,
    )
  if (hasUnprintable(value))
    throw badRequest('invalidValue', `${name} must not hold control or invisible characters`)
  return value === '' ? undefined : value
}

/** Returns an object's own value; names compare without regard to case. @throws ScimError if a name is there twice */
export function byNameIn(object: Resource, name: string): unknown {
  const key = name.toLowerCase()
  const names = Object.keys(object).filter((one) => one.toLowerCase() === key)
  if (names.length > 1)
    throw badRequest('invalidSyntax', `the attribute ${name} is there ${names.length} times`)
  return names.length === 1 ? object[names[0]!] : undefined
}

/** Returns the body, with those of the values that it does not name: a client need not know all. */
export function withKept(body: unknown, kept: Resource): Resource {
  const given = objectOf(body, 'the body')
  const missing = Object.entries(kept).filter(([name]) => byNameIn(given, name) === undefined)
  return { ...Object.fromEntries(missing), ...given }
}

/** @throws ScimError `invalidSyntax` */
export function objectOf(value: unknown, what: string): Resource {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Resource
  throw badRequest('invalidSyntax', `expected an object as ${what}, got ${kindOf(value)}`)
}

/** @throws ScimError `invalidSyntax` if the body does not name the schema */
export function requireSchema(body: Resource, schema: string): void {
  const schemas = byNameIn(body, 'schemas')
  const isNamed =
    Array.isArray(schemas) &&
    schemas.some((one) => typeof one === 'string' && one.toLowerCase() === schema.toLowerCase())
  if (!isNamed) throw badRequest('invalidSyntax', `expected schemas with ${schema}`)
}

function externalIdOf(value: unknown): { externalId?: string } {
  if (typeof value !== 'string') return {}
  if (value.length > MAX_EXTERNAL_ID)
    throw badRequest(
      'invalidValue',
      `expected ${MAX_EXTERNAL_ID} characters at most in externalId, got ${value.length}`,
    )
  return { externalId: value }
}

function required(name: string, value: unknown): string {
  if (typeof value !== 'string') throw badRequest('invalidValue', `the attribute ${name} is required`)
  return value
}

const kindOf = (value: unknown): string =>
  value === undefined
    ? 'none'
    : value === null
      ? 'null'
      : Array.isArray(value)
        ? 'a list'
        : `a ${typeof value}`

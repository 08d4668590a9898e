/**
 * PATCH (RFC 7644 section 3.5.2), with what Entra ID and Okta send beyond it: operations in capitals, values without a path
 * whose names are paths, texts for booleans, and values that make what a filter does not find.
 */
import { badRequest } from './error.ts'
import { type Filter, parsePath } from './filter.ts'
import { type Resource, testOfValue } from './match.ts'
import { byNameIn, memberIds, objectOf, readValue, requireSchema } from './resource.ts'
import { type Attribute, attributeAt, byName, type ResourceType } from './schema.ts'

const PATCH_SCHEMA = 'urn:ietf:params:scim:api:messages:2.0:PatchOp'
const OPERATIONS = ['add', 'remove', 'replace'] as const
export const MAX_OPERATIONS = 1000

type Verb = (typeof OPERATIONS)[number]

/** One change of one attribute. */
export interface Step {
  verb: Verb
  attribute: Attribute
  part: Attribute | undefined
  /** In brackets. */
  filter: Filter | undefined
  value: unknown
}

/**
 * Reads a body into steps; what concerns attributes that are not kept is left out.
 * @throws ScimError `invalidSyntax`, `invalidPath`, `invalidFilter`, `noTarget`, `mutability`
 */
export function readPatch(type: ResourceType, body: unknown): Step[] {
  const given = objectOf(body, 'the body')
  requireSchema(given, PATCH_SCHEMA)
  const operations = byNameIn(given, 'Operations')
  if (!Array.isArray(operations) || operations.length === 0)
    throw badRequest('invalidSyntax', 'expected a list of one operation or more as Operations')
  if (operations.length > MAX_OPERATIONS)
    throw badRequest('tooMany', `expected ${MAX_OPERATIONS} operations at most, got ${operations.length}`)
  return operations.flatMap((one) => stepsOf(type, objectOf(one, 'an operation')))
}

function stepsOf(type: ResourceType, operation: Resource): Step[] {
  const word = byNameIn(operation, 'op')
  const verb = OPERATIONS.find((one) => typeof word === 'string' && one === word.toLowerCase())
  if (!verb) throw badRequest('invalidSyntax', 'expected add, remove or replace as op')
  const path = byNameIn(operation, 'path')
  const value = byNameIn(operation, 'value')
  if (verb !== 'remove' && value === undefined) throw badRequest('invalidValue', `${verb} needs a value`)
  if (path !== undefined && path !== null && path !== '') {
    if (typeof path !== 'string') throw badRequest('invalidPath', 'expected a text as path')
    return stepAt(type, verb, path, value)
  }
  if (verb === 'remove') throw badRequest('noTarget', 'remove needs a path')
  return Object.entries(objectOf(value, 'the value of an operation without a path')).flatMap(
    ([name, one]) => {
      // What comes with a whole resource, and cannot be set, is no mistake here.
      const found = attributeAt(type, name)
      const isFixed = typeof found === 'object' && isReadOnly(found.attribute)
      return isFixed || (found === 'unknown' && !name.includes('[')) ? [] : stepAt(type, verb, name, one)
    },
  )
}

const isReadOnly = ({ mutability, name }: Attribute) => mutability === 'readOnly' || name === 'schemas'

function stepAt(type: ResourceType, verb: Verb, text: string, value: unknown): Step[] {
  const { path, filter, part: behind } = parsePath(text)
  const found = attributeAt(type, behind === undefined ? path : `${path}.${behind}`)
  if (found === 'unkept') return []
  if (found === 'unknown') throw badRequest('invalidPath', `the attribute of the path ${path} does not exist`)
  const { attribute, part } = found
  if (isReadOnly(attribute)) throw badRequest('mutability', `${attribute.name} cannot be set`)
  if (filter && !attribute.multiValued)
    throw badRequest('invalidPath', `${attribute.name} has one value: leave the brackets out`)
  if (filter) testOfValue(attribute, filter)
  return [{ verb, attribute, part, filter, value }]
}

/** Returns the resource after the steps, for `readUser`. @throws ScimError */
export function patched(resource: Resource, steps: readonly Step[]): Resource {
  const now: Record<string, unknown> = { ...resource }
  for (const step of steps) now[step.attribute.name] = after(now[step.attribute.name], step)
  return now
}

function after(now: unknown, step: Step): unknown {
  const { verb, attribute, part, filter, value } = step
  if (filter || (part && attribute.multiValued)) return afterAmong(listOf(now), step)
  if (verb === 'remove') {
    if (part) return { ...(now as Resource), [part.name]: undefined }
    if (!attribute.multiValued || value === undefined || value === null) return undefined
    const gone = listOf(readValue(attribute, value)).map(keyOfValue)
    return listOf(now).filter((one) => !gone.includes(keyOfValue(one)))
  }
  if (part) return { ...(now as Resource), [part.name]: readValue(part, value) }
  const given = readValue(attribute, value)
  if (attribute.multiValued) return verb === 'add' ? joined(listOf(now), listOf(given)) : given
  // Parts that a value does not name stay as they are (RFC 7644 sections 3.5.2.1 and 3.5.2.3).
  if (attribute.type === 'complex' && given !== undefined)
    return { ...(now as Resource), ...(given as Resource) }
  return given
}

/** Changes the values that the filter finds. One that it does not find is made of what the filter asks for. */
function afterAmong(all: readonly unknown[], { verb, attribute, part, filter, value }: Step): unknown {
  const isMeant = filter ? testOfValue(attribute, filter) : () => true
  const isFound = all.some((one) => isMeant(one as Resource))
  if (verb === 'remove') {
    return all.flatMap((one) =>
      !isMeant(one as Resource) ? [one] : part ? [{ ...(one as Resource), [part.name]: undefined }] : [],
    )
  }
  const given = part
    ? { [part.name]: readValue(part, value) }
    : (listOf(readValue(attribute, value))[0] ?? {})
  if (!isFound) {
    const asked = filter ? askedBy(attribute, filter) : {}
    if (!asked) throw badRequest('noTarget', `no value of ${attribute.name} meets the filter`)
    return joined(all, [{ ...asked, ...given }])
  }
  const changed = all.map((one) => (isMeant(one as Resource) ? { ...(one as Resource), ...given } : one))
  const isPrimary = (one: unknown) => (one as Resource)['primary'] === true
  const made = changed.find((one, at) => isPrimary(one) && !isPrimary(all[at]))
  return made === undefined ? changed : changed.map((one) => (one === made ? one : withoutPrimary(one)))
}

/** A primary value takes that from the one before (RFC 7644 section 3.5.2). */
function joined(all: readonly unknown[], more: readonly unknown[]): unknown[] {
  const keys = new Set(all.map(keyOfValue))
  const added = more.filter((one) => !keys.has(keyOfValue(one)))
  const hasPrimary = added.some((one) => (one as Resource)['primary'] === true)
  return [...(hasPrimary ? all.map(withoutPrimary) : all), ...added]
}

const withoutPrimary = (one: unknown): unknown => {
  const { primary: _primary, ...rest } = one as Resource
  return rest
}

/** Returns the parts that `type eq "work" and primary eq true` asks for; undefined for other filters. */
function askedBy(attribute: Attribute, filter: Filter): Resource | undefined {
  if (filter.kind === 'and') {
    const all = filter.of.map((one) => askedBy(attribute, one))
    return all.every((one) => one !== undefined) ? Object.assign({}, ...all) : undefined
  }
  if (filter.kind !== 'compare' || filter.operator !== 'eq') return undefined
  const part = byName(attribute.subAttributes ?? [], filter.path)
  return part && { [part.name]: readValue(part, filter.value) }
}

/** Changes of a group's members, in the order of the steps. */
export interface MemberChange {
  /** Whether all that were members before go. */
  isWhole: boolean
  added: Set<string>
  removed: Set<string>
}

/** Returns what the steps do to `members`. @throws ScimError */
export function memberChangeOf(steps: readonly Step[]): MemberChange {
  const change: MemberChange = { isWhole: false, added: new Set(), removed: new Set() }
  for (const step of steps.filter(({ attribute }) => attribute.name === 'members')) apply(change, step)
  return change
}

function apply(change: MemberChange, { verb, part, filter, value }: Step): void {
  if (part) throw badRequest('mutability', 'a member does not change: add one, and remove the other')
  const hasValue = value !== undefined && value !== null
  if (verb === 'add' && !filter) {
    for (const id of memberIds(value)) {
      change.added.add(id)
      change.removed.delete(id)
    }
  } else if (verb === 'remove' && (filter || hasValue)) {
    for (const id of filter ? idsOf(filter) : memberIds(value)) {
      change.added.delete(id)
      change.removed.add(id)
    }
  } else if (!filter) {
    change.isWhole = true
    change.removed.clear()
    change.added = new Set(verb === 'remove' ? [] : memberIds(value))
  } else throw badRequest('mutability', 'a member does not change: add one, and remove the other')
}

/** Returns the ids of `value eq "a" or value eq "b"`. @throws ScimError `invalidFilter` for another filter */
function idsOf(filter: Filter): string[] {
  if (filter.kind === 'or') return filter.of.flatMap(idsOf)
  const isId = filter.kind === 'compare' && filter.operator === 'eq' && filter.path.toLowerCase() === 'value'
  if (isId && typeof filter.value === 'string') return [filter.value]
  throw badRequest('invalidFilter', 'members are found by value eq "ID", and "or" between several')
}

const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

const keyOfValue = (value: unknown): string => {
  const one = (value as Resource)['value']
  return typeof one === 'string' ? `value ${one}` : JSON.stringify(value)
}

/** Parts of a resource that a client asks for: `attributes` and `excludedAttributes` (RFC 7644 section 3.9). */
import { badRequest } from './error.ts'
import type { Resource } from './match.ts'
import { attributeAt, attributesOf, type ResourceType } from './schema.ts'

const MAX_SELECTED = 100

export interface Selection {
  attributes: readonly string[]
  excluded: readonly string[]
}

/** Reads the two parameters, each a text apart by commas or a list. @throws ScimError `invalidSyntax` */
export function selectionOf(attributes: unknown, excludedAttributes: unknown): Selection {
  const [wanted, excluded] = [namesOf(attributes), namesOf(excludedAttributes)]
  if (wanted.length > 0 && excluded.length > 0)
    throw badRequest('invalidSyntax', 'expected attributes or excludedAttributes, got both')
  return { attributes: wanted, excluded }
}

function namesOf(value: unknown): string[] {
  if (value === undefined || value === null || value === '') return []
  const all: unknown[] = Array.isArray(value) ? value : String(value).split(',')
  if (all.length > MAX_SELECTED || !all.every((one) => typeof one === 'string'))
    throw badRequest('invalidSyntax', `expected names of ${MAX_SELECTED} attributes at most`)
  return all.map((one) => (one as string).trim()).filter((one) => one !== '')
}

/** Whether an attribute is shown, in whole or in part. */
export function isSelected(type: ResourceType, name: string, { attributes, excluded }: Selection): boolean {
  const isNamed = (path: string, whole: boolean) => {
    const found = attributeAt(type, path)
    return typeof found === 'object' && found.attribute.name === name && !(whole && found.part)
  }
  if (attributes.length > 0) return attributes.some((path) => isNamed(path, false))
  return !excluded.some((path) => isNamed(path, true))
}

/** Returns the resource with the selected attributes, and those that are always returned. */
export function selected(type: ResourceType, resource: Resource, selection: Selection): Resource {
  if (selection.attributes.length + selection.excluded.length === 0) return resource
  const entries = attributesOf(type).flatMap(({ name, returned }) => {
    const value = resource[name]
    if (value === undefined) return []
    if (returned === 'always') return [[name, value] as const]
    if (!isSelected(type, name, selection)) return []
    const left = partsOf(type, name, value, selection)
    return left === undefined ? [] : [[name, left] as const]
  })
  return Object.fromEntries(entries)
}

function partsOf(
  type: ResourceType,
  name: string,
  value: unknown,
  { attributes, excluded }: Selection,
): unknown {
  const paths = [...attributes, ...excluded].flatMap((path) => {
    const found = attributeAt(type, path)
    return typeof found === 'object' && found.attribute.name === name ? [found.part?.name] : []
  })
  // The whole attribute is named.
  if (paths.length === 0 || paths.includes(undefined)) return value
  const isKept = (part: string) => paths.includes(part) === attributes.length > 0
  const cut = (one: unknown) =>
    Object.fromEntries(Object.entries(one as Resource).filter(([part]) => isKept(part)))
  return Array.isArray(value) ? value.map(cut) : cut(value)
}

/**
 * Checks a parsed configuration against its schema and collects every fault, in words for the person who
 * wrote the file. TypeBox decides whether a single value fits; the walk around it finds unknown keys, keys
 * and values of later releases, and names the expected value.
 */
import { closest } from 'fastest-levenshtein'
import type { TSchema } from 'typebox'
import Value from 'typebox/value'
import { nearest } from './nearest.ts'

export interface Problem {
  path: (string | number)[]
  message: string
}

/** The parts of a JSON schema that config/schema.ts uses. */
interface Node {
  type?: string
  title?: string
  secret?: boolean
  default?: unknown
  properties?: Record<string, Node>
  required?: string[]
  items?: Node
  anyOf?: Node[]
}

const MAX_SHOWN = 80

type Dictionary = Record<string, unknown>
const isMap = (value: unknown): value is Dictionary =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** `listen.https.port`, `syslog[0].host`. */
export function pathText(path: readonly (string | number)[]): string {
  return path.map((part, i) => (typeof part === 'number' ? `[${part}]` : i > 0 ? `.${part}` : part)).join('')
}

const generic = (path: readonly (string | number)[]) =>
  path.filter((part) => typeof part === 'string').join('.')

/** Returns all keys of the schema, as full paths without list positions. */
export function knownKeys(schema: TSchema): string[] {
  const keys: string[] = []
  const walk = (node: Node, path: string): void => {
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      const full = path === '' ? key : `${path}.${key}`
      keys.push(full)
      walk(child, full)
    }
    if (node.items) walk(node.items, path)
    if (!node.secret) for (const branch of node.anyOf ?? []) walk(branch, path)
  }
  walk(schema as Node, '')
  return [...new Set(keys)]
}

/** Returns the text without the user and the password of an address: in a wrong place they would reach a log. */
export function withoutUserinfo(text: string): string {
  // Before the last @, whatever a password has in it. One slash is left where a path was made of an address.
  const [begin, end] = [text.indexOf(':/'), text.lastIndexOf('@')]
  return begin < 0 || end < begin ? text : `${text.slice(0, begin)}://…${text.slice(end)}`
}

function describe(value: unknown, secret: boolean): string {
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'a list'
  if (isMap(value)) return 'a map'
  if (value === null) return 'nothing'
  if (secret) return `a ${typeof value} that is not shown here`
  const text = withoutUserinfo(JSON.stringify(value))
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text
}

class Checker {
  readonly problems: Problem[] = []
  readonly known: string[]

  constructor(known: string[]) {
    this.known = known
  }

  walk(node: Node, value: unknown, path: (string | number)[], secret: boolean): void {
    if (node.anyOf) this.#union(node, value, path, secret || node.secret === true)
    else if (node.type === 'object' && isMap(value)) this.#map(node, value, path, secret)
    else if (node.type === 'array' && Array.isArray(value) && node.items) {
      for (const [i, item] of value.entries()) this.walk(node.items, item, [...path, i], secret)
      if (!Value.Check({ ...node, items: {} } as TSchema, value)) this.#expected(node, value, path, secret)
    } else if (!Value.Check(node as TSchema, value)) this.#expected(node, value, path, secret)
  }

  #map(node: Node, value: Dictionary, path: (string | number)[], secret: boolean): void {
    const properties = node.properties ?? {}
    for (const [key, item] of Object.entries(value)) {
      const child = Object.hasOwn(properties, key) ? properties[key] : undefined
      if (child) this.walk(child, item, [...path, key], secret)
      else this.#unknown([...path, key], Object.keys(properties))
    }
    for (const key of node.required ?? []) {
      if (!Object.hasOwn(value, key) && properties[key]?.default === undefined) {
        this.problems.push({ path, message: `the key ${key} is missing` })
      }
    }
  }

  /**
   * Checks a map against the branch that has its first key, so that the error names the fault inside and not
   * the whole map.
   */
  #union(node: Node, value: unknown, path: (string | number)[], secret: boolean): void {
    const maps = (node.anyOf ?? []).filter((branch) => branch.type === 'object')
    const first = isMap(value) ? Object.keys(value)[0] : undefined
    const branch =
      maps.length === 1 ? maps[0] : maps.find((map) => Object.hasOwn(map.properties ?? {}, first ?? ''))
    if (isMap(value) && branch) this.#map(branch, value, path, secret)
    else if (!Value.Check(node as TSchema, value)) this.#expected(node, value, path, secret)
  }

  #unknown(path: (string | number)[], siblings: string[]): void {
    const key = String(path.at(-1))
    const near = nearest(key, siblings)
    const suggestion =
      near === undefined ? closest(generic(path), this.known) : pathText([...path.slice(0, -1), near])
    this.problems.push({ path, message: `unknown key; the nearest known one is ${suggestion}` })
  }

  #expected(node: Node, value: unknown, path: (string | number)[], hidden: boolean): void {
    const secret = hidden || node.secret === true
    const expected = node.title ?? (node.type === 'object' ? 'a map of keys' : (node.type ?? 'another value'))
    this.problems.push({ path, message: `expected ${expected}, got ${describe(value, secret)}` })
  }
}

/**
 * Returns every fault of `value`, in the order of the file. Without any, the value fits the schema once
 * defaults are filled in.
 */
export function checkAgainst(schema: TSchema, value: unknown): Problem[] {
  const checker = new Checker(knownKeys(schema))
  checker.walk(schema as Node, value, [], false)
  return checker.problems
}

/** Columns of a table: the fields of the API's bodies; fields of a nested object as `session.accounts`. */
import { type TObject, type TSchema, Type } from 'typebox'
import type { Kind } from '../../csv/cells.ts'

export interface Column {
  name: string
  kind: Kind
  /** Set for a list whose order matters. */
  isOrdered?: boolean
  /** Path of the value in a body and in an object as the API shows it. */
  path: readonly string[]
}

type Json = Readonly<Record<string, unknown>>

/** Returns a column for each field; `secrets` are write-only fields. */
export function columnsOf(
  schema: TObject,
  secrets: readonly string[],
  under: readonly string[] = [],
): Column[] {
  return Object.entries(schema.properties).flatMap(([field, property]) => {
    const path = [...under, field]
    if (Type.IsObject(property)) return columnsOf(property, [], path)
    const kind = secrets.includes(field) ? 'secret' : kindOf(property)
    const isOrdered = (property as { 'x-ordered'?: boolean })['x-ordered'] === true
    return [{ name: path.join('.'), kind, path, ...(isOrdered && { isOrdered }) }]
  })
}

function kindOf(schema: TSchema): Kind {
  const {
    type,
    minLength,
    enum: values,
    anyOf,
    format,
  } = schema as TSchema & {
    type?: string
    minLength?: number
    enum?: unknown
    anyOf?: (TSchema & { format?: string; type?: string })[]
    format?: string
  }
  if (anyOf) {
    if (anyOf.some((one) => one.format === 'date-time')) return 'time'
    return anyOf.some((one) => one.type === 'integer') ? 'nullable_integer' : 'nullable'
  }
  if (type === 'array') return 'list'
  if (type === 'boolean') return 'boolean'
  if (type === 'integer') return 'integer'
  if (format === 'date-time') return 'time'
  return values !== undefined || (minLength ?? 0) > 0 ? 'word' : 'text'
}

export function valueAt(object: Json, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, field) => (value as Json | undefined)?.[field], object)
}

/** Sets a value in a body, and creates the objects around it. */
export function putAt(body: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [field = '', ...rest] = path
  if (rest.length === 0) body[field] = value
  else {
    body[field] ??= {}
    putAt(body[field] as Record<string, unknown>, rest, value)
  }
}

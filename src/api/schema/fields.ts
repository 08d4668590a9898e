/** Parts of schemas that several resources share, and checks that a schema cannot express. */
import { type TObject, type TProperties, type TSchema, Type } from 'typebox'
import { objectNameError } from '../../model/names.ts'
import { networkError } from '../../model/networks.ts'
import type { Id } from '../../model/objects.ts'
import { ApiError, fieldError } from '../http/errors.ts'
import { MAX_LIST, MAX_TEXT } from '../http/limits.ts'

/** Makes an object with these fields and no others. */
export function exact<P extends TProperties>(properties: P, description?: string) {
  return Type.Object(properties, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
  })
}

/** Names the schema in the OpenAPI document. */
export function titled<S extends TSchema>(title: string, schema: S): S {
  return { ...schema, title }
}

/** Makes the body of an update: every field optional, and no others. */
export function partial<S extends TObject>(schema: S) {
  return Type.Partial(schema, { additionalProperties: false })
}

/** Makes the schema of an answer that is not JSON: it documents the answer and checks nothing. */
export function notJson(mediaType: string, description: string): TSchema {
  const type = mediaType.replace(/;.*/, '')
  return { description, content: { [type]: { schema: Type.String() } } } as unknown as TSchema
}

export const shown = {
  id: Type.String({ description: 'opaque, 26 characters (ULID)', examples: ['01K9T5RZ8Q4W6X2C3V1B0N7M5J'] }),
  url: Type.String({ description: 'path of the object in the API' }),
}

/** `example` is a valid value of the field. */
export function name(description: string, example: string) {
  return Type.String({ minLength: 1, maxLength: 512, description, examples: [example] })
}

export function text(description: string, maxLength = MAX_TEXT) {
  return Type.String({ maxLength, description })
}

export function names(description: string, maxItems = MAX_LIST) {
  return Type.Array(Type.String({ maxLength: 2048 }), { maxItems, description })
}

export function oneOf<const V extends readonly string[]>(values: V, description: string) {
  return Type.Unsafe<V[number]>(Type.String({ enum: [...values], description }))
}

export function timeOrNull(description: string) {
  return Type.Union([Type.String({ format: 'date-time' }), Type.Null()], { description })
}

export const ipSource = Type.Array(Type.String({ maxLength: 64 }), {
  maxItems: 256,
  description: 'addresses and networks (CIDR) from which it works; empty: any',
})

/** Formats milliseconds as RFC 3339 in UTC. */
export function timeText(time: number): string {
  return new Date(time).toISOString()
}

/**
 * Converts RFC 3339 to milliseconds, and null to undefined.
 * @throws ApiError `invalid_field` for a day that does not exist
 */
export function timeOf(field: string, value: string | null): number | undefined {
  if (value === null) return undefined
  const time = Date.parse(value)
  if (Number.isNaN(time))
    throw fieldError('invalid_field', field, 'expected a time such as 2031-12-31T23:59:59Z')
  return time
}

/** @throws ApiError `invalid_field` with the problem, if there is one */
export function check(field: string, problem: string | undefined): void {
  if (problem !== undefined) throw fieldError('invalid_field', field, problem)
}

/**
 * Returns the new name of an object, or undefined if it does not change. `own` is the object if it exists;
 * `property` holds the names of existing objects.
 * @throws ApiError `invalid_field` if the name is invalid, `duplicate` if another object has it
 */
export async function checkName<P extends string>(
  field: string,
  wanted: string | undefined,
  own: { id: Id } | undefined,
  objects: { find(name: string): Promise<({ id: Id } & Readonly<Record<P, string>>) | undefined> },
  property: P,
): Promise<void> {
  if (wanted === undefined) return
  check(field, objectNameError(wanted))
  const other = await objects.find(wanted)
  if (other && other.id !== own?.id) throw fieldError('duplicate', field, `"${other[property]}" exists`)
}

/** @throws ApiError `invalid_field` that names each bad member */
export function checkNetworks(field: string, networks: readonly string[] | undefined): void {
  const details = (networks ?? []).flatMap((network, index) => {
    const message = networkError(network)
    return message === undefined ? [] : [{ field: `${field}/${index}`, message }]
  })
  if (details.length > 0) throw new ApiError('invalid_field', details)
}

/** Query parameters of a list: page, search, sort order, and fields. */
import type { FastifyRequest } from 'fastify'
import { type Static, type TObject, Type } from 'typebox'
import { MAX_EXPRESSION } from '../../search/grammar.ts'
import type { Page } from '../../store/store.ts'
import { fieldError } from '../http/errors.ts'
import { MAX_DEFAULT_PAGE } from '../http/limits.ts'
import { searchOf } from './search.ts'

export const listQuery = {
  q: Type.Optional(
    Type.String({
      maxLength: MAX_EXPRESSION,
      description: 'only what meets this expression, `a=x && b~"y*"`: see /api/doc/Usage.html#search',
    }),
  ),
  limit: Type.Optional(
    Type.Integer({
      minimum: -1,
      maximum: 1_000_000,
      default: MAX_DEFAULT_PAGE,
      description: 'objects at most; -1: all',
    }),
  ),
  offset: Type.Optional(Type.Integer({ minimum: 0, description: 'objects to leave out at the beginning' })),
  sort: Type.Optional(
    Type.String({ maxLength: 256, description: 'fields, `-` before one for descending: `a,-b`' }),
  ),
  fields: Type.Optional(Type.String({ maxLength: 1024, description: 'only these fields: `a,b`' })),
}
export const ListQuery = Type.Object(listQuery, { additionalProperties: false })
export type ListQuery = Static<typeof ListQuery>

/** @throws SearchError */
export function pageOf(query: ListQuery, request: FastifyRequest): Page {
  const { limit = MAX_DEFAULT_PAGE, offset = 0 } = query
  const page: Page = { limit, offset }
  if (limit === -1 || MAX_DEFAULT_PAGE < limit) page.inPieces = true
  if (query.sort !== undefined) page.sort = query.sort.split(',')
  const search = searchOf(query.q, request)
  if (search) page.search = search
  return page
}

/** Returns the fields to show. @throws ApiError `invalid_field` if one does not exist */
export function fieldsOf(query: ListQuery, view: TObject): readonly string[] | undefined {
  if (query.fields === undefined) return undefined
  const fields = query.fields.split(',')
  const unknown = fields.find((field) => !Object.hasOwn(view.properties, field))
  if (unknown !== undefined)
    throw fieldError('invalid_field', 'fields', `there is no field "${unknown}" here`)
  return fields
}

export function pick(object: object, fields: readonly string[] | undefined): object {
  if (!fields) return object
  const all = object as Record<string, unknown>
  return Object.fromEntries(fields.map((field) => [field, all[field]]))
}

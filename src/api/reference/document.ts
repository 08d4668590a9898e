/**
 * The served OpenAPI document: the routes' schemas, completed by what they lack (ids of the operations,
 * required sign-in, header fields of answers, examples), and with shared parts defined once, so that a
 * generated client has one type for each.
 */
import { STATUS_CODES } from 'node:http'
import { ROUTES, routeOf } from '../access/routes.ts'
import { bodyExample } from './examples.ts'

type Json = { [key: string]: unknown }
interface Operation extends Json {
  parameters?: { name: string }[]
  requestBody?: { content: { [type: string]: Json } }
  responses: { [status: string]: Json }
}
interface OpenApi extends Json {
  paths: { [path: string]: { [method: string]: Operation } }
  components: { schemas?: Json; responses?: Json; headers?: Json }
}

/** Header fields of successful answers. */
const HEADERS = {
  ETag: {
    description: 'what the object is now: for `If-Match` of a later change',
    schema: { type: 'string' },
  },
  'X-Total-Count': {
    description: 'objects that meet the query, on all pages',
    required: true,
    schema: { type: 'integer', minimum: 0 },
  },
  'X-Next-Cursor': {
    description: '`cursor` of the next page; absent behind the last one',
    schema: { type: 'string' },
  },
  Location: {
    description: 'path of the object that was made',
    required: true,
    schema: { type: 'string' },
  },
  'Idempotency-Replayed': {
    description: '`true`: this is the answer of before, and nothing was made',
    schema: { type: 'string', const: 'true' },
  },
} as const
type HeaderName = keyof typeof HEADERS

/** `GET /devices/{device}/services/{ref}` becomes `getDevicesDeviceServicesRef`: as stable as the route. */
export function operationId(method: string, path: string): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '')
  return [method.toLowerCase(), ...words.map((word) => word[0]!.toUpperCase() + word.slice(1))].join('')
}

/**
 * Returns a completed copy; `collected` stays unchanged. A schema with a title becomes a component of that
 * name.
 */
export function openApiDocument(collected: object): object {
  const document = structuredClone(collected) as OpenApi
  const schemas = new Map<string, { text: string; schema: unknown }>()
  const responses: Json = {}

  /** Replaces titled schemas by references. If two differ under one title, the second stays in place. */
  const shared = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(shared)
    if (typeof value !== 'object' || value === null) return value
    const schema = Object.fromEntries(Object.entries(value).map(([key, one]) => [key, shared(one)]))
    const { title } = schema
    if (typeof title !== 'string') return schema
    const text = JSON.stringify(schema)
    const first = schemas.get(title)
    if (!first) schemas.set(title, { text, schema })
    return first && first.text !== text ? schema : { $ref: `#/components/schemas/${title}` }
  }

  for (const [path, methods] of Object.entries(document.paths)) {
    // Routes that know `If-Match` return the tag to send in it.
    const isTagged = Object.values(methods).some((operation) => takes(operation, 'if-match'))
    for (const [method, operation] of Object.entries(methods)) {
      const whole = shared({ operationId: operationId(method, path), ...operation }) as Operation
      const route = routeOf(method, path)
      if (ROUTES[route] === 'public') whole['security'] = []
      const example = bodyExample(route)?.body
      const content = whole.requestBody?.content['application/json']
      if (content && example) content['example'] = example
      for (const [status, response] of Object.entries(whole.responses)) {
        const names = headersOf(whole, status, isTagged)
        if (names.length > 0) response['headers'] = Object.fromEntries(names.map(headerReference))
      }
      methods[method] = whole
    }
  }
  for (const operation of Object.values(document.paths).flatMap((methods) => Object.values(methods))) {
    for (const [status, response] of Object.entries(operation.responses)) {
      const text = STATUS_CODES[status] ?? status
      response['description'] = text
      if (status < '400') continue
      const component = text.replaceAll(/[^a-zA-Z]/g, '')
      responses[component] = response
      operation.responses[status] = { $ref: `#/components/responses/${component}` }
    }
  }
  document.components.schemas = Object.fromEntries([...schemas].map(([title, { schema }]) => [title, schema]))
  document.components.responses = responses
  document.components.headers = HEADERS
  return document
}

function takes(operation: Operation, parameter: string): boolean {
  return (operation.parameters ?? []).some(({ name }) => name === parameter)
}

/** Returns the names of the header fields of an answer, besides those of every answer. */
function headersOf(operation: Operation, status: string, isTagged: boolean): HeaderName[] {
  if (status === '201') {
    // An object made without the key cannot be read again, so it has no location.
    return takes(operation, 'idempotency-key') ? ['Location', 'ETag', 'Idempotency-Replayed'] : []
  }
  if (status !== '200') return []
  if (takes(operation, 'cursor')) return ['X-Next-Cursor']
  if (takes(operation, 'offset')) return ['X-Total-Count']
  return isTagged ? ['ETag'] : []
}

function headerReference(name: HeaderName): [HeaderName, Json] {
  return [name, { $ref: `#/components/headers/${name}` }]
}

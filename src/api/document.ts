/**
 * The OpenAPI document that is served: what the routes' schemas give, with an id for each operation, and with what
 * many of them share said once, so that a client made from it has one type for one thing.
 */
import { STATUS_CODES } from 'node:http'

type Json = { [key: string]: unknown }
interface Operation extends Json {
  responses: { [status: string]: Json }
}
interface OpenApi extends Json {
  paths: { [path: string]: { [method: string]: Operation } }
  components: { schemas?: Json; responses?: Json }
}

/** `GET /devices/{device}/services/{ref}` is `getDevicesDeviceServicesRef`: as lasting as the route. */
export function operationId(method: string, path: string): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '')
  return [method.toLowerCase(), ...words.map((word) => word[0]!.toUpperCase() + word.slice(1))].join('')
}

/** The document anew; `collected` stays as it is. A schema with a title becomes a component of that name. */
export function openApiDocument(collected: object): object {
  const document = structuredClone(collected) as OpenApi
  const schemas = new Map<string, { text: string; schema: unknown }>()
  const responses: Json = {}

  /** The schema, with references in the place of titled ones; of two with one title the second stays. */
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
    for (const [method, operation] of Object.entries(methods)) {
      methods[method] = shared({ operationId: operationId(method, path), ...operation }) as Operation
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
  return document
}

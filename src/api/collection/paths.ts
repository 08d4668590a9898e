/** Route paths in Fastify's notation: `/devices/:device/services`. */
import { type TObject, Type } from 'typebox'

export type Params = Readonly<Record<string, string>>

/** Returns the route's path below `/api`, with its parameters replaced by their values. */
export function pathOf(path: string, params: Params): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** Returns a schema with one string per parameter of the path. */
export function paramsSchema(path: string): TObject {
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '')
  const described = (name: string) => (name === 'ref' ? 'id or name' : `id or name of the ${name}`)
  return Type.Object(
    Object.fromEntries(names.map((name) => [name, Type.String({ description: described(name) })])),
  )
}

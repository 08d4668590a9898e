/** Paths of routes, as Fastify writes them: `/devices/:device/services`. */
import { type TObject, Type } from 'typebox'

export type Params = Readonly<Record<string, string>>

/** Where a route's path leads below `/api`, with the values of its parameters in place. */
export function pathOf(path: string, params: Params): string {
  return path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ''))
}

/** One string for each parameter of a path. */
export function paramsSchema(path: string): TObject {
  const names = [...path.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '')
  const described = (name: string) => (name === 'ref' ? 'id or name' : `id or name of the ${name}`)
  return Type.Object(
    Object.fromEntries(names.map((name) => [name, Type.String({ description: described(name) })])),
  )
}

/** Checks answers against the served OpenAPI document. */
import { Compile } from 'typebox/compile'

interface Response {
  content?: Record<string, { schema?: object }>
  headers?: Record<string, { required?: boolean }>
}
interface Operation {
  responses: Record<string, Response>
}
interface Route {
  method: string
  pattern: RegExp
  /** Number of fixed parts of the path: routes with more of them match first. */
  fixed: number
  operation: Operation
}

interface Answered {
  status: number
  headers: Readonly<Record<string, unknown>>
  body: unknown
}
type Check = (method: string, url: string, answer: Answered) => void

/** Returns a check that throws if an answer differs from the document for its route and status. */
export function documentCheck(document: object): Check {
  const { paths } = resolved(document, document) as { paths: Record<string, Record<string, Operation>> }
  const routes: Route[] = Object.entries(paths)
    .flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        method: method.toUpperCase(),
        pattern: new RegExp(`^${path.replaceAll('.', '\\.').replace(/\{\w+\}/g, '[^/]+')}/?$`),
        fixed: path.replace(/\{\w+\}/g, '').length,
        operation,
      })),
    )
    .sort((a, b) => b.fixed - a.fixed)
  const validators = new Map<object, (body: unknown) => string | undefined>()

  return (method, url, { status, headers, body }) => {
    // Without dot segments, as inject sends it.
    const path = new URL(`https://localhost${url}`).pathname.replace(/^\/api(\/v[\d.]+)?/, '')
    const route = routes.find((one) => one.method === method && one.pattern.test(path))
    const response = route?.operation.responses[status]
    if (route && status < 300 && !response)
      throw new Error(`${method} ${path} answers ${status}, which is not documented`)
    if (response && status < 300) checkHeaders(`${method} ${path}`, response, headers)
    const schema = response?.content?.['application/json']?.schema
    if (!schema || body === undefined || isSelection(url)) return
    let validate = validators.get(schema)
    if (!validate) {
      const validator = Compile(schema as never)
      validate = (value) => (validator.Check(value) ? undefined : JSON.stringify(validator.Errors(value)))
      validators.set(schema, validate)
    }
    const flaw = validate(body)
    if (flaw !== undefined) throw new Error(`${method} ${path} answers ${status} against its schema: ${flaw}`)
  }
}

/** Header fields about the object: those sent must be documented, and those documented must be sent. */
const TOLD = ['ETag', 'X-Total-Count', 'Location', 'Idempotency-Replayed']

function checkHeaders(route: string, response: Response, headers: Answered['headers']): void {
  for (const name of TOLD) {
    const isSent = headers[name.toLowerCase()] !== undefined
    const promised = response.headers?.[name]
    if (isSent && !promised) throw new Error(`${route} sends ${name}, which is not documented`)
    // A repeated answer may be that of an object which has changed since.
    const isReplay = name === 'ETag' && headers['idempotency-replayed'] !== undefined
    const isDue = promised && name !== 'Idempotency-Replayed' && !isReplay
    if (isDue && !isSent) throw new Error(`${route} does not send ${name}, which is documented`)
  }
}

/** With `fields` an answer contains only part of its objects. */
function isSelection(url: string): boolean {
  return url.includes('fields=')
}

/** Returns the document, or part of it, with its references replaced by their content. */
function resolved(part: unknown, document: object): unknown {
  if (Array.isArray(part)) return part.map((one) => resolved(one, document))
  if (typeof part !== 'object' || part === null) return part
  if ('$ref' in part && typeof part.$ref === 'string') {
    const keys = part.$ref.replace(/^#\//, '').split('/')
    return resolved(
      keys.reduce<unknown>((at, key) => (at as Record<string, unknown>)[key], document),
      document,
    )
  }
  return Object.fromEntries(Object.entries(part).map(([key, one]) => [key, resolved(one, document)]))
}

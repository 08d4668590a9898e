/** The reference as one self-contained page: no script, font or picture. */
import { PROFILES } from '../../model/objects.ts'
import { FEATURES, LEVELS } from '../../model/profile-rights.ts'
import { FACTORY_PROFILES } from '../../model/profiles.ts'
import { type Need, ROUTES, routeOf } from '../access/routes.ts'
import { ERRORS } from '../http/errors.ts'
import { bodyExample } from './examples.ts'
import { escaped, table } from './html.ts'
import { searchPart } from './search-page.ts'

export const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}' +
  'table{border-collapse:collapse;margin:.5rem 0 1rem}td,th{border:1px solid #bbb;padding:.2rem .5rem;text-align:left;vertical-align:top}' +
  'code{background:#f2f2f2;padding:0 .2rem}h3{margin-top:2rem}@media(prefers-color-scheme:dark){body{background:#111;color:#eee}code{background:#333}}'

type Json = Readonly<Record<string, unknown>>

/** Renders an OpenAPI document as a page; everything in it is escaped. */
export function referencePage(document: object): string {
  const { info, paths } = document as {
    info: { description?: string }
    paths: Record<string, Record<string, Json>>
  }
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const sections = Map.groupBy(
    operations,
    ({ operation }) => (operation['tags'] as string[] | undefined)?.[0] ?? 'Other',
  )
  const contents = [...sections.keys()].map((tag) => `<li><a href="#${anchor(tag)}">${escaped(tag)}</a></li>`)
  const bodies = [...sections].map(
    ([tag, members]) => `<h2 id="${anchor(tag)}">${escaped(tag)}</h2>${members.map(operationPart).join('')}`,
  )
  return (
    `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Sallyport API</title><style>${STYLE}</style></head><body>` +
    `<h1>Sallyport API</h1><p>${escaped(info.description ?? '')} The same as an OpenAPI document: <a href="../openapi.json">openapi.json</a>.</p>` +
    `<ul>${contents.join('')}<li><a href="#profiles">Profiles</a></li><li><a href="#errors">Errors</a></li><li><a href="#search">Search</a></li></ul>` +
    `${bodies.join('')}${profilesPart()}${errorsPart()}${searchPart()}</body></html>\n`
  )
}

function operationPart({
  method,
  path,
  operation,
}: {
  method: string
  path: string
  operation: Json
}): string {
  const key = routeOf(method, path)
  const parts = [
    `<h3 id="${anchor(key)}"><code>${escaped(`${method} ${path}`)}</code> ${escaped(String(operation['summary'] ?? ''))}</h3>`,
    `<p>${escaped(String(operation['description'] ?? ''))} Needs: ${escaped(needText(ROUTES[key]))}.</p>`,
  ]
  const parameters = (operation['parameters'] as Json[] | undefined) ?? []
  if (parameters.length > 0) {
    const rows = parameters.map((one) => [
      String(one['name']),
      String(one['in']),
      typeText(one['schema'] as Json),
    ])
    parts.push(table(['parameter', 'in', 'type'], rows))
  }
  const body = contentSchema(operation['requestBody'])
  if (body) parts.push(`<p>Body:</p>${fieldsTable(body)}`)
  const example = bodyExample(key)
  if (example) {
    const text = `${method} ${example.path}\n${JSON.stringify(example.body, undefined, 2)}`
    parts.push(`<p>Example:</p><pre>${escaped(text)}</pre>`)
  }
  for (const [status, response] of Object.entries((operation['responses'] as Json | undefined) ?? {})) {
    const schema = status.startsWith('2') ? contentSchema(response) : undefined
    if (schema) parts.push(`<p>Answer ${escaped(status)}:</p>${fieldsTable(schema)}`)
  }
  return parts.join('')
}

function contentSchema(part: unknown): Json | undefined {
  const content = (part as { content?: Record<string, { schema?: Json }> } | undefined)?.content
  return content?.['application/json']?.schema
}

function fieldsTable(schema: Json): string {
  const object = schema['type'] === 'array' ? (schema['items'] as Json) : schema
  const properties = (object['properties'] as Record<string, Json> | undefined) ?? {}
  const required = (object['required'] as string[] | undefined) ?? []
  const rows = Object.entries(properties).map(([name, property]) => [
    name,
    `${typeText(property)}${required.includes(name) ? ', required' : ''}`,
    String(property['description'] ?? ''),
  ])
  const note = schema['type'] === 'array' ? '<p>An array of:</p>' : ''
  return rows.length > 0 ? note + table(['field', 'type', 'meaning'], rows) : note
}

function typeText(schema: Json | undefined): string {
  if (!schema) return ''
  if (Array.isArray(schema['enum'])) return (schema['enum'] as unknown[]).map(String).join(' | ')
  const alternatives = schema['anyOf'] as Json[] | undefined
  if (alternatives) return alternatives.map(typeText).join(' or ')
  if (schema['type'] === 'array') return `array of ${typeText(schema['items'] as Json)}`
  if (schema['const'] !== undefined) return String(schema['const'])
  const properties = schema['properties'] as Record<string, Json> | undefined
  if (properties)
    return `{${Object.entries(properties)
      .map(([name, one]) => `${name}: ${typeText(one)}`)
      .join(', ')}}`
  return String(schema['type'] ?? 'object')
}

function needText(need: Need | undefined): string {
  if (need === undefined || need === 'public') return 'nothing'
  if (need === 'scim') return 'a SCIM token'
  return need === 'signed_in' ? 'a sign-in' : `${need.feature}: ${need.level}`
}

function profilesPart(): string {
  const rows = FEATURES.map((feature) => [
    feature,
    ...PROFILES.map((profile) => FACTORY_PROFILES[profile][feature]),
  ])
  return `<h2 id="profiles">Profiles</h2><p>Levels, each including those before it: ${LEVELS.join(', ')}.</p>${table(['feature', ...PROFILES], rows)}`
}

function errorsPart(): string {
  const rows = Object.entries(ERRORS).map(([code, { status, description }]) => [
    code,
    String(status),
    description,
  ])
  return `<h2 id="errors">Errors</h2>${table(['error', 'status', 'description'], rows)}`
}

function anchor(text: string): string {
  return text.toLowerCase().replace(/[^a-z0-9]+/g, '-')
}

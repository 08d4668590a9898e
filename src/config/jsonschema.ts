/**
 * config/schema.json for editors, made from the loader's schema: `node src/config/jsonschema.ts >
 * config/schema.json`. A test fails if it is out of date.
 */
import { ConfigSchema } from './schema.ts'

type Json = { [key: string]: Json } | Json[] | string | number | boolean | null
type Node = { [key: string]: Json }

const isNode = (value: Json | undefined): value is Node =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/**
 * Adapts the schema for editors: a key with a default may be absent or empty, as in the loader; our own
 * keywords are removed.
 */
function forEditors(value: Json): Json {
  if (Array.isArray(value)) return value.map(forEditors)
  if (!isNode(value)) return value
  const { secret: _, ...node } = value
  const { properties } = node
  const schema: Node = {}
  for (const [key, item] of Object.entries(node)) {
    schema[key] = key === 'default' || key === 'enum' ? item : forEditors(item)
  }
  if (Array.isArray(schema['required']) && isNode(properties)) {
    const required = schema['required'].filter((key) => {
      const property = properties[String(key)]
      return isNode(property) && property['default'] === undefined
    })
    delete schema['required']
    if (required.length > 0) schema['required'] = required
  }
  if (node['default'] !== undefined && (node['type'] === 'object' || node['type'] === 'array')) {
    schema['type'] = [node['type'], 'null']
  }
  return schema
}

/** Returns the text of config/schema.json. */
export function configJsonSchema(): string {
  const schema = forEditors(JSON.parse(JSON.stringify(ConfigSchema)) as Json)
  const document = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $comment: 'made by: node src/config/jsonschema.ts > config/schema.json',
    title: 'Sallyport configuration',
    ...(schema as Node),
  }
  return `${JSON.stringify(document, null, 2)}\n`
}

if (import.meta.main) process.stdout.write(configJsonSchema())

/** config/siem: each snippet is in order, and names only events and fields that there are. */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { EVENT_FIELDS } from '../../src/audit/events/fields.ts'
import { namesOf } from '../../src/audit/sinks/formats/names.ts'
import { EVENT_CODES } from '../audit/codes.ts'

const FOLDER = new URL('../../config/siem/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, FOLDER), 'utf8')
const FIELDS = new Set<string>([
  ...EVENT_FIELDS.map((field) => namesOf(field).ecs),
  ...['event.action', 'event.outcome', 'process.command_line', 'source.ip', 'destination.ip'],
])
/** Modifiers of values (Sigma 2). */
const MODIFIERS = ['contains', 'startswith', 'gte', 're']
const LEVELS = ['low', 'medium', 'high', 'critical']

const rules = readdirSync(new URL('sigma/', FOLDER))
const ids = new Set<string>()

describe.each(rules)('the Sigma rule %s', (name) => {
  const rule = parse(read(`sigma/${name}`))
  const { condition, ...searches } = rule.detection

  test('has what a rule has', () => {
    expect(name).toMatch(/^[a-z-]+\.yml$/)
    expect(rule.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    expect(ids).not.toContain(rule.id)
    ids.add(rule.id)
    expect(rule.logsource).toEqual({ product: 'sallyport', service: 'audit' })
    expect(LEVELS).toContain(rule.level)
    for (const tag of rule.tags) expect(tag).toMatch(/^attack\.(t\d{4}(\.\d{3})?|[a-z_]+)$/)
    expect(condition.split(' or ').sort()).toEqual(Object.keys(searches).sort())
  })

  test('names events and fields that there are', () => {
    for (const search of Object.values<Record<string, unknown>>(searches)) {
      for (const [key, value] of Object.entries(search)) {
        const [field = '', ...modifiers] = key.split('|')
        expect(FIELDS).toContain(field)
        for (const modifier of modifiers) expect(MODIFIERS).toContain(modifier)
        if (field === 'event.action') for (const code of [value].flat()) expect(EVENT_CODES).toContain(code)
      }
    }
  })
})

test("Elastic's pipeline is JSON with processors of one kind each, on fields that there are", () => {
  const { processors } = JSON.parse(read('elastic-ingest-pipeline.json'))
  for (const processor of processors) expect(Object.keys(processor)).toHaveLength(1)
  const named = [...JSON.stringify(processors).matchAll(/\{\{\{([a-z_.0-9]+)\}\}\}/g)].map(
    ([, field]) => field!,
  )
  expect(named.length).toBeGreaterThan(4)
  for (const field of named) expect(FIELDS).toContain(field)
})

test("Vector's configuration joins a source, a transform and a sink", () => {
  const { sources, transforms, sinks } = parse(read('vector.yaml'))
  expect(transforms.sallyport_ecs.inputs).toEqual(Object.keys(sources))
  expect(sinks.elasticsearch.inputs).toEqual(Object.keys(transforms))
})

test("Splunk's properties name fields that there are", () => {
  const aliases = [...read('splunk-props.conf').matchAll(/^FIELDALIAS-\w+ = "([^"]+)" AS \w+$/gm)]
  expect(aliases.length).toBeGreaterThan(3)
  for (const [, field] of aliases) expect(FIELDS).toContain(field)
})

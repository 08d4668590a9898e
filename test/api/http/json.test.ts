import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonFlaw, MAX_DEPTH } from '../../../src/api/http/json.ts'
import { processorTime } from '../../processor-time.ts'

describe('a key that stands twice', () => {
  it.each([
    '{"a":1,"a":2}',
    '{"a":1,"b":{},"a":2}',
    '{"x":[{"a":1},{"b":{"a":1,"a":null}}]}',
    '{"a":1,"\\u0061":2}',
    '{"a\\"b":1,"a\\"b":2}',
    '{"":1,"":2}',
    '[1,{"\\\\":1,"\\\\":2}]',
    ' { "a" : "a" , "a" : "a" } ',
  ])('is found in %s', (text) => {
    JSON.parse(text)
    expect(jsonFlaw(text)).toContain('stands twice')
  })

  it.each([
    '{"a":"a","b":"a"}',
    '[{"a":1},{"a":1}]',
    '{"a":{"a":{"a":1}}}',
    '{"a":["a","a"],"b":["a"]}',
    '{"a":"{\\"a\\":1,\\"a\\":2}"}',
    '{"a\\\\":1,"a":2}',
    '"a"',
    '[]',
    '{}',
    '12',
  ])('is not seen in %s', (text) => {
    JSON.parse(text)
    expect(jsonFlaw(text)).toBeUndefined()
  })

  it('is never seen in what has every key once', () => {
    const value = fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' })
    fc.assert(
      fc.property(value, fc.nat(3), (one, indent) => {
        expect(jsonFlaw(JSON.stringify(one, null, indent))).toBeUndefined()
      }),
    )
  })

  it('is found wherever it is put', () => {
    const key = fc.string({ unit: 'binary' })
    const value = fc.jsonValue({ maxDepth: 3 })
    fc.assert(
      fc.property(key, value, value, fc.nat(4), (name, one, other, depth) => {
        const [k, a, b] = [name, one, other].map((part) => JSON.stringify(part))
        const inner = `{${k}:${a},${k}:${b}}`
        const text = `${'[{"x":'.repeat(depth)}${inner}${'}]'.repeat(depth)}`
        JSON.parse(text)
        expect(jsonFlaw(text)).toContain('stands twice')
      }),
    )
  })
})

it('nesting has an end', () => {
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
  expect(jsonFlaw(nested(MAX_DEPTH))).toBeUndefined()
  expect(jsonFlaw(nested(MAX_DEPTH + 1))).toContain('nested deeper')
})

it('a megabyte takes milliseconds, however it is made', () => {
  const bodies = [
    JSON.stringify({ a: '"'.repeat(500_000) }),
    JSON.stringify({ a: '\\'.repeat(500_000) }),
    JSON.stringify(Object.fromEntries(Array.from({ length: 80_000 }, (_, n) => [`key${n}`, n]))),
    JSON.stringify(Array.from({ length: 500_000 }, () => 1)),
  ]
  for (const body of bodies) {
    const begin = processorTime()
    expect(jsonFlaw(body)).toBeUndefined()
    expect(processorTime() - begin).toBeLessThan(500)
  }
})

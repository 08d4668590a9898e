/** The OpenAPI document, as a linter that we did not write sees it (Redocly), with all its recommended rules as errors. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let document: { paths: Record<string, Record<string, { responses: Record<string, unknown> }>> }
beforeAll(async () => {
  h = await startHarness()
  document = (await h.call('GET', '/openapi.json')).body
})
afterAll(() => h.close())

async function problems(source: object): Promise<{ rule: string; at: string | undefined }[]> {
  const config = await createConfig({ extends: ['recommended-strict'] })
  const found = await lintFromString({
    source: JSON.stringify(source),
    absoluteRef: '/openapi.json',
    config,
  })
  return found.map(({ ruleId, location }) => ({ rule: ruleId, at: location[0]?.pointer }))
}

describe('the OpenAPI document', () => {
  test('has no problem but that asking for approvals is never answered with success yet', async () => {
    const found = await problems(document)
    const others = found.filter(
      ({ rule, at }) => !(rule === 'operation-2xx-response' && at?.startsWith('#/paths/~1approvals')),
    )
    expect(others).toEqual([])
  })

  test('has its faults found', async () => {
    const { paths, ...rest } = document
    const { get, ...others } = paths['/users']!
    const faulty = { ...get!, responses: { 200: { $ref: '#/components/responses/Nowhere' } } }
    const found = await problems({ ...rest, paths: { ...paths, '/users': { ...others, get: faulty } } })
    expect(found.map(({ rule }) => rule)).toContain('no-unresolved-refs')
  })

  test('says what many operations share once, under a name', () => {
    expect(JSON.stringify(document).length).toBeLessThan(256 * 1024)
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
    expect(new Set(refs.map(([, , name]) => name))).toContain('Conflict')
    expect(refs.filter(([, , name]) => name === 'Account').length).toBeGreaterThan(10)
  })
})

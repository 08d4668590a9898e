/**
 * The OpenAPI document, checked by an independent linter (Redocly) with all its recommended rules as errors.
 */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { routeOf } from '../../src/api/access/routes.ts'
import { BODY_EXAMPLES, bodyExample } from '../../src/api/reference/examples.ts'
import { escaped } from '../../src/api/reference/html.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
interface Operation {
  security?: object[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  responses: Record<string, { headers?: Record<string, { $ref: string }> }>
}
let document: {
  security: Record<string, string[]>[]
  paths: Record<string, Record<string, Operation>>
  components: {
    securitySchemes: Record<string, { in: string; name: string; scheme?: string }>
    headers: object
  }
}
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
  test('has no problem but that a WebSocket is answered with 101', async () => {
    const found = await problems(document)
    const others = found.filter(
      ({ rule, at }) =>
        !(rule === 'operation-2xx-response' && /^#\/paths\/~1sessions~1\{ref\}~1live/.test(at ?? '')),
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
    expect(JSON.stringify(document).length).toBeLessThan(480 * 1024)
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/(\w+)\/(\w+)"/g)]
    expect(new Set(refs.map(([, , name]) => name))).toContain('Conflict')
    expect(refs.filter(([, , name]) => name === 'Account').length).toBeGreaterThan(10)
  })

  test('says which routes need no sign-in, and how the others are signed in to', () => {
    const open = operations().filter(({ operation }) => operation.security?.length === 0)
    expect(open.map(({ route }) => route)).toEqual(['GET /version', 'POST /session'])
    expect(operations().filter(({ operation }) => operation.security)).toHaveLength(2)
    const { securitySchemes } = document.components
    const sent = document.security.map((one) =>
      Object.keys(one).map((name) => securitySchemes[name]?.name ?? securitySchemes[name]?.scheme),
    )
    expect(sent).toEqual([['sallyport_session'], ['X-Auth-Key'], ['X-Auth-Key', 'X-Auth-User'], ['bearer']])
  })

  test('says which header fields answers have', () => {
    const named = (route: string, status: string) => {
      const found = operations().find((one) => one.route === route)
      return Object.keys(found?.operation.responses[status]?.headers ?? {})
    }
    const created = ['Location', 'ETag', 'Idempotency-Replayed']
    expect(named('POST /devices', '201')).toEqual(created)
    expect(named('POST /devices/:device/services', '201')).toEqual(created)
    expect(named('POST /targets/:ref/ticket', '201')).toEqual([])
    expect(named('GET /devices', '200')).toEqual(['X-Total-Count'])
    expect(named('GET /targets', '200')).toEqual(['X-Total-Count'])
    expect(named('GET /events', '200')).toEqual(['X-Next-Cursor'])
    expect(named('GET /devices/:ref', '200')).toEqual(['ETag'])
    expect(named('PUT /devices/:ref', '200')).toEqual(['ETag'])
    expect(named('DELETE /devices/:ref', '204')).toEqual([])
    expect(Object.keys(document.components.headers)).toEqual([
      'ETag',
      'X-Total-Count',
      'X-Next-Cursor',
      ...created.filter((one) => one !== 'ETag'),
    ])
  })

  test('has an example for each body that makes an object', () => {
    const making = operations().filter(
      ({ route, operation }) =>
        operation.responses['201']?.headers?.['Location'] || route === 'POST /session',
    )
    expect(making.length).toBeGreaterThan(14)
    for (const { route, operation } of making) {
      expect(operation.requestBody?.content['application/json']?.example, route).toEqual(
        bodyExample(route)?.body,
      )
      expect(bodyExample(route), route).toBeDefined()
    }
    expect(making.map(({ route }) => route).sort()).toEqual(BODY_EXAMPLES.map(({ route }) => route).sort())
  })
})

function operations(): { route: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ route: routeOf(method, path), operation })),
  )
}

describe('the examples of bodies', () => {
  test('are accepted, one after the other', async () => {
    const cookie = await h.signIn()
    for (const { route, path, body } of BODY_EXAMPLES) {
      expect(path.replaceAll(/\/(srv1|db|corp\.example|example)(?=\/)/g, '/:_')).toBe(
        route.replace('POST ', '').replaceAll(/:\w+/g, ':_'),
      )
      const answer = await h.call('POST', path, { cookie: route === 'POST /session' ? '' : cookie, body })
      expect(answer.status, `${route}: ${answer.text}`).toBe(route === 'POST /session' ? 200 : 201)
    }
  })

  test('are shown on the page, beside their route', async () => {
    const page = (await h.call('GET', '/doc/Usage.html')).text
    const parts = page.split('<h3 ')
    for (const { route, path, body } of BODY_EXAMPLES) {
      const part = parts.find((one) => one.includes(`<code>${route.replaceAll(/:(\w+)/g, '{$1}')}</code>`))
      expect(part).toContain(`<pre>POST ${path}\n${escaped(JSON.stringify(body, undefined, 2))}</pre>`)
    }
  })
})

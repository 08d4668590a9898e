import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../../src/api/access/routes.ts'
import { ERRORS } from '../../../src/api/http/errors.ts'
import { MAX_BODY } from '../../../src/api/http/limits.ts'
import { PROFILES } from '../../../src/model/objects.ts'
import { FEATURES } from '../../../src/model/profile-rights.ts'
import { FACTORY_PROFILES } from '../../../src/model/profiles.ts'
import { type Answer, type Harness, startHarness } from '../harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const post = (path: string, body: unknown): Promise<Answer> => h.call('POST', path, { cookie, body })
const get = (path: string): Promise<Answer> => h.call('GET', path, { cookie })

describe('docs/api.md', () => {
  const text = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')
  const rows = text.split('\n').filter((line) => line.startsWith('|'))

  it('lists every error with its status and description, and no other', () => {
    const listed = rows.flatMap(
      (row) => /^\| `(\w+)` \| (\d{3}) \| (.*) \|$/.exec(row)?.slice(1, 4).join(' ') ?? [],
    )
    expect(listed).toEqual(
      Object.entries(ERRORS).map(([code, one]) => `${code} ${one.status} ${one.description}`),
    )
  })

  it('shows the profiles as they are', () => {
    const expected = FEATURES.map((feature) =>
      ['', `\`${feature}\``, ...PROFILES.map((profile) => FACTORY_PROFILES[profile][feature]), '']
        .join(' | ')
        .trim(),
    )
    expect(rows.filter((row) => expected.includes(row))).toEqual(expected)
  })
})

it('docs/api.md lists every route with what it needs', () => {
  const text = readFileSync(new URL('../../../docs/api.md', import.meta.url), 'utf8')
  const listed = text
    .split('\n')
    .flatMap((line) => /^\| `([A-Z]+ \/\S+)` \| (.*) \|$/.exec(line)?.slice(1, 3).join(' ') ?? [])
  const expected = Object.entries(ROUTES).map(([route, need]) => {
    if (typeof need !== 'string') return `${route} \`${need.feature}\`: ${need.level}`
    return `${route} ${{ public: 'public', signed_in: 'a sign-in', scim: 'a SCIM token' }[need]}`
  })
  expect(listed).toEqual(expected)
})

describe('versions', () => {
  it.each(['/api', '/api/v2.3', '/api/v2.10', '/api/v3.0', '/api/v3.8', '/api/v3.12'])(
    'serves %s',
    async (base) => {
      expect((await get(`${base}/users`)).status).toBe(200)
      const created = await post(`${base}/usergroups`, { group_name: `g${base.replace(/\W/g, '')}` })
      expect(created.headers['location']).toBe(`${base}/usergroups/${created.body.id}`)
      expect((await get(String(created.headers['location']))).body).toEqual(created.body)
    },
  )

  it.each(['/api/v2.2', '/api/v3.13', '/api/v1.0', '/api/v4.0', '/api/v3', '/api/v03.12', '/api/v3.012'])(
    'does not serve %s',
    async (base) => {
      expect((await h.call('GET', `${base}/users`, { cookie })).status).toBe(404)
    },
  )
})

describe('path tricks', () => {
  it('accepts a trailing slash without a redirect', async () => {
    expect((await get('/users/')).status).toBe(200)
    expect((await get('/users/admin/')).status).toBe(200)
  })

  it.each([
    '/api//users',
    '/api/v3.12//users',
    '/api/%75sers/..',
    '/api/users/%2e%2e',
    '/api/USERS',
    '/api/users;x',
    '/api/users%2fadmin',
    '/api/users/..%2fdevices',
    '/api/users/%00',
  ])('never answers %s with more than a 401 or 404', async (path) => {
    expect([401, 404]).toContain((await h.call('GET', path)).status)
    expect((await get(path)).status).toBe(404)
  })

  it('answers bad escapes and over-long parts with the catalogue', async () => {
    const bad = await get('/users/%zz')
    expect([bad.status, bad.body.error]).toEqual([400, 'malformed_url'])
    const long = await get(`/users/${'x'.repeat(3000)}`)
    expect([long.status, long.body.error]).toEqual([414, 'url_too_long'])
    expect((await get(`/users/${encodeURIComponent('𝒳\n')}`)).status).toBe(404)
  })
})

describe('bodies', () => {
  const cases: [string, string, number, string][] = [
    ['no JSON', '{', 400, 'malformed_body'],
    ['__proto__', '{"group_name":"p","__proto__":{"x":1}}', 400, 'malformed_body'],
    ['a nested __proto__', '{"group_name":"p","session":{"__proto__":[]}}', 400, 'malformed_body'],
    ['constructor.prototype', '{"group_name":"p","constructor":{"prototype":{}}}', 400, 'malformed_body'],
    ['a key that stands twice', '{"group_name":"p","group_name":"q"}', 400, 'malformed_body'],
    ['a key in two spellings', '{"group_name":"p","group\\u005fname":"q"}', 400, 'malformed_body'],
    ['a nested key twice', '{"group_name":"p","session":{"a":1,"a":2}}', 400, 'malformed_body'],
    ['endless nesting', `{"group_name":${'['.repeat(200_000)}${']'.repeat(200_000)}}`, 400, 'malformed_body'],
    ['constructor', '{"group_name":"p","constructor":1}', 400, 'unknown_field'],
    ['an array', '[]', 400, 'invalid_field'],
    ['null', 'null', 400, 'invalid_field'],
    ['nothing', '', 400, 'invalid_field'],
    ['an id', '{"group_name":"p","id":"01K9T5RZ8Q4W6X2C3V1B0N7M5J"}', 400, 'unknown_field'],
    ['a url', '{"group_name":"p","url":"/x"}', 400, 'unknown_field'],
    ['a missing field', '{"description":"x"}', 400, 'invalid_field'],
    ['a wrong type', '{"group_name":5}', 400, 'invalid_field'],
    ['a name that looks like an id', '{"group_name":"01K9T5RZ8Q4W6X2C3V1B0N7M5J"}', 400, 'invalid_field'],
    ['a name with a slash', '{"group_name":"a/b"}', 400, 'invalid_field'],
    ['too much', `{"group_name":"${'x'.repeat(MAX_BODY)}"}`, 413, 'payload_too_large'],
  ]
  it.each(cases)('with %s are refused', async (_name, raw, status, error) => {
    const answer = await h.call('POST', '/targetgroups', { cookie, raw })
    expect([answer.status, answer.body.error]).toEqual([status, error])
    expect((await get('/targetgroups')).body).toEqual([])
  })

  it.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonx',
    '',
  ])('of type "%s" are refused', async (type) => {
    const raw = '{"group_name":"p"}'
    const answer = await h.call('POST', '/usergroups', { cookie, raw, headers: { 'content-type': type } })
    expect([answer.status, answer.body.error]).toEqual([415, 'unsupported_media_type'])
  })

  it('are not read before the guard has let the request in', async () => {
    const raw = 'x'.repeat(MAX_BODY + 1)
    expect((await h.call('POST', '/users', { raw })).status).toBe(401)
  })

  it('name the field at fault', async () => {
    const answer = await post('/users', {
      user_name: 'x',
      user_auths: ['local_password', 'magic'],
      emial: 'a@b',
    })
    expect(answer.body).toMatchObject({ error: 'unknown_field', details: [{ field: 'emial' }] })
    const wrong = await post('/users', { user_name: 'x', ip_source: ['192.0.2.1', 'magic'] })
    expect(wrong.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'ip_source/1' }] })
    const unknown = await post('/users', { user_name: 'x', user_auths: ['local_password', 'magic'] })
    expect(unknown.body).toMatchObject({ error: 'unknown_reference', details: [{ field: 'user_auths/1' }] })
    const missing = await post('/devices', {})
    expect(missing.body.details.map((one: { field: string }) => one.field)).toEqual(['device_name', 'host'])
  })
})

describe('fields whose rule comes later', () => {
  it.each([
    ['/domains', { domain_name: 'x', vault_type: 'local' }, 'vault_type'],
    ['/domains', { domain_name: 'x', force_service_account: true }, 'force_service_account'],
  ])('are refused by name: %s %o', async (path, body, field) => {
    const answer = await post(path, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: 'not_available_yet', details: [{ field }] })
  })
})

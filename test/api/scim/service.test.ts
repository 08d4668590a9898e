/** The protocol: published requests of providers, RFC 7644's examples, hostile requests, and the reach of tokens. */
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { times } from '../../times.ts'
import { ENTRA, filter, type Published } from './entra.ts'
import { OKTA } from './okta.ts'
import { GROUP, patchOf, type Setting, scimSetting, USER } from './setting.ts'

let s: Setting
let other: string
beforeAll(async () => {
  s = await scimSetting('external_id')
  other = (await s.must('POST', '/authdomains/other/scimtokens', { token_name: 'idp' })).token
})
afterAll(() => s.close())

test.each([
  ['Entra ID', ENTRA],
  ['Okta', OKTA],
] as [string, readonly Published[]][])(
  'the published requests of %s are answered as they expect',
  async (_, all) => {
    const ids = { USER: 'none', GROUP: 'none' }
    const filled = <T>(value: T): T =>
      JSON.parse(JSON.stringify(value).replaceAll(/(?<![A-Za-z])(USER|GROUP)(?![A-Za-z])/g, (name) => ids[name as 'USER'])) as T
    for (const { name, request, status, shows } of all) {
      const [method, path, body] = filled(request)
      const answer = await s.scim(method, path, body, { token: other })
      expect([name, answer.status, answer.text]).toEqual([name, status, answer.text])
      if (shows) expect(answer.body, name).toMatchObject(filled(shows))
      if (status !== 204) expect(answer.headers['content-type']).toBe('application/scim+json; charset=utf-8')
      if (status === 201) ids[path === '/Users' ? 'USER' : 'GROUP'] = answer.body.id
    }
  },
)

test('pages, filters and selections, by GET and by POST', async () => {
  const users = []
  for (const at of [1, 2, 3, 4, 5])
    users.push(
      await s.user(`page${at}`, { emails: [{ value: `p${at}@x.example`, type: at % 2 ? 'work' : 'home' }] }),
    )
  const names = async (query: string) => {
    const { body } = await s.scim('GET', `/Users?${query}`)
    return [body.totalResults, body.Resources?.map(({ userName }: { userName: string }) => userName)]
  }
  expect(await names('startIndex=2&count=2')).toEqual([5, ['page2', 'page3']])
  expect(await names('count=0')).toEqual([5, []])
  expect(await names('startIndex=-3&count=1')).toEqual([5, ['page1']])
  expect(
    await names(`filter=${filter('emails[type eq "WORK" and value co "P"]')}&count=1&startIndex=2`),
  ).toEqual([3, ['page3']])
  expect(await names(`filter=${filter('userName eq "PAGE4" and not (active eq false)')}`)).toEqual([
    1,
    ['page4'],
  ])
  expect(await names(`filter=${filter('externalId eq "ID-page4"')}`)).toEqual([0, []])
  const picked = await s.scim('GET', `/Users/${users[0].id}?attributes=userName,emails.value`)
  expect(picked.body).toEqual({
    schemas: [USER],
    id: users[0].id,
    userName: 'page1',
    emails: [{ value: 'p1@x.example' }],
  })
  const search = {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:SearchRequest'],
    filter: 'userName sw "page"',
    count: 2,
  }
  const group = await s.group('page group', [users[0].id])
  expect(
    (await s.scim('POST', '/Users/.search', { ...search, attributes: ['userName'] })).body,
  ).toMatchObject({ totalResults: 5, itemsPerPage: 2 })
  const all = await s.scim('POST', '/.search', {
    ...search,
    filter: 'userName eq "page5" or displayName eq "Page Group"',
  })
  expect(all.body.Resources.map(({ meta }: { meta: { resourceType: string } }) => meta.resourceType)).toEqual(
    ['User', 'Group'],
  )
  expect(
    (await s.scim('GET', `/Users?filter=${filter(`groups.value eq "${group.id}"`)}`)).body.totalResults,
  ).toBe(1)
  expect(
    (await s.scim('GET', `/Groups?filter=${filter(`members[value eq "${users[0].id}"]`)}`)).body.totalResults,
  ).toBe(1)
})

test('a version guards a change', async () => {
  const made = await s.user('etag')
  const tag = made.meta.version
  const change = patchOf({ op: 'replace', path: 'displayName', value: 'E' })
  const same = await s.scim('GET', `/Users/${made.id}`, undefined, { headers: { 'if-none-match': tag } })
  expect([same.status, same.text]).toEqual([304, ''])
  expect(
    (await s.scim('PATCH', `/Users/${made.id}`, change, { headers: { 'if-match': 'W/"x"' } })).status,
  ).toBe(412)
  expect((await s.scim('PATCH', `/Users/${made.id}`, change, { headers: { 'if-match': tag } })).status).toBe(
    200,
  )
  expect(
    (await s.scim('DELETE', `/Users/${made.id}`, undefined, { headers: { 'if-match': tag } })).status,
  ).toBe(412)
})

test('it says what it can do, and refuses bulk operations', async () => {
  const config = await s.scim('GET', '/ServiceProviderConfig')
  expect(config.body).toMatchObject({
    patch: { supported: true },
    bulk: { supported: false },
    etag: { supported: true },
  })
  expect((await s.scim('GET', '/ResourceTypes/User')).body).toMatchObject({
    endpoint: '/Users',
    schema: USER,
  })
  expect((await s.scim('GET', `/Schemas/${GROUP}`)).body.attributes[0]).toMatchObject({
    name: 'displayName',
    required: true,
  })
  const bulk = await s.scim('POST', '/Bulk', { schemas: [], Operations: [] })
  expect([bulk.status, bulk.body.status]).toEqual([501, '501'])
})

test('a token reaches its own domain only, and nothing else of the API', async () => {
  const ann = await s.user('reach')
  const group = await s.group('Reach', [ann.id])
  for (const [method, path, body] of [
    ['GET', `/Users/${ann.id}`, undefined],
    ['PUT', `/Users/${ann.id}`, { schemas: [USER], userName: 'x', externalId: 'x' }],
    ['PATCH', `/Users/${ann.id}`, patchOf({ op: 'replace', path: 'active', value: false })],
    ['DELETE', `/Users/${ann.id}`, undefined],
    ['GET', `/Groups/${group.id}`, undefined],
    ['PATCH', `/Groups/${group.id}`, patchOf({ op: 'remove', path: 'members' })],
    ['DELETE', `/Groups/${group.id}`, undefined],
  ] as const)
    expect((await s.scim(method, path, body, { token: other })).status, `${method} ${path}`).toBe(404)
  const theirs = { schemas: [GROUP], displayName: 'Theirs', members: [{ value: ann.id }] }
  expect((await s.scim('POST', '/Groups', theirs, { token: other })).body.scimType).toBe('invalidValue')
  expect(
    (await s.scim('GET', `/Users?filter=${filter('userName eq "reach"')}`, undefined, { token: other })).body
      .totalResults,
  ).toBe(0)
  for (const path of ['/users', '/authdomains', '/session', '/apikeys'])
    expect(
      (await s.h.call('GET', path, { headers: { authorization: `Bearer ${s.token}` } })).status,
      path,
    ).toBe(401)
  const nobody = await s.scim('GET', '/Users', undefined, { token: 'nonsense' })
  expect([nobody.status, nobody.headers['www-authenticate'], nobody.body.status]).toEqual([
    401,
    'Bearer error="invalid_token"',
    '401',
  ])
  const cookie = await s.h.api.inject({ method: 'GET', url: '/scim/v2/Users', headers: { cookie: s.cookie } })
  expect(cookie.statusCode).toBe(401)
})

test('tokens: two at a time, bound to networks and a time, known by their last use, gone at once', async () => {
  const path = '/authdomains/other/scimtokens'
  const second = await s.must('POST', path, { token_name: 'new' })
  const third = await s.h.call('POST', path, { cookie: s.cookie, body: { token_name: 'third' } })
  expect([third.status, third.body.error]).toEqual([409, 'too_many_scim_tokens'])
  const tried = async () => (await s.scim('GET', '/Users', undefined, { token: second.token })).status
  expect(await tried()).toBe(200)
  const shown = await s.must('GET', `${path}/new`)
  expect([shown.last_used_from, shown.last_used_at]).toEqual(['127.0.0.1', expect.any(String)])
  expect(JSON.stringify(shown)).not.toContain(second.token)
  expect(JSON.stringify(await s.h.events())).not.toContain(second.token)
  await s.must('PUT', `${path}/new`, { ip_source: ['192.0.2.0/24'] })
  expect(await tried()).toBe(401)
  await s.must('PUT', `${path}/new`, {
    ip_source: [],
    expiration_date: new Date(s.h.clock.now + 1000).toISOString(),
  })
  expect(await tried()).toBe(200)
  s.h.clock.now += 2000
  expect(await tried()).toBe(401)
  expect((await s.h.events('auth.failure')).at(-1)).toMatchObject({ user: 'scim:new@other', method: 'scim' })
  await s.h.call('DELETE', `${path}/new`, { cookie: s.cookie })
  expect((await s.must('GET', path)).length).toBe(1)
})

test('whoever may not give the profiles of the mappings makes no token', async () => {
  const rights = { profiles: 'modify', user_groups: 'modify', users: 'modify' }
  await s.must('POST', '/profiles', { profile_name: 'half', rights })
  await s.must('POST', '/users', { user_name: 'u-half', password: 'u-half password', profile: 'half' })
  const cookie = await s.h.signIn('u-half')
  const answer = await s.h.call('POST', '/authdomains/corp/scimtokens', { cookie, body: { token_name: 'x' } })
  expect([answer.status, answer.body.error]).toEqual([403, 'profile_exceeds_own'])
})

test.each([
  [
    'inherited names',
    'POST',
    '/Users',
    `{"schemas":["${USER}"],"userName":"p1","externalId":"p1","__proto__":{"active":false}}`,
    400,
    'invalidSyntax',
  ],
  [
    'a name twice',
    'POST',
    '/Users',
    `{"schemas":["${USER}"],"userName":"p2","userName":"p3","externalId":"p"}`,
    400,
    'invalidSyntax',
  ],
  [
    'a name twice, in two cases',
    'POST',
    '/Users',
    `{"schemas":["${USER}"],"userName":"p2","USERNAME":"p3","externalId":"p"}`,
    400,
    'invalidSyntax',
  ],
  ['no JSON', 'POST', '/Users', '{', 400, 'invalidSyntax'],
  ['a list', 'POST', '/Users', '[]', 400, 'invalidSyntax'],
  ['no schema', 'POST', '/Users', '{"userName":"p"}', 400, 'invalidSyntax'],
  ['deep nesting', 'POST', '/Users', `${'{"a":'.repeat(40)}1${'}'.repeat(40)}`, 400, 'invalidSyntax'],
  [
    'a huge list',
    'POST',
    '/Users',
    JSON.stringify({
      schemas: [USER],
      userName: 'p',
      externalId: 'p',
      emails: Array(51).fill({ value: 'x' }),
    }),
    400,
    'invalidValue',
  ],
  [
    'a huge body',
    'POST',
    '/Users',
    JSON.stringify({ schemas: [USER], userName: 'x'.repeat(1024 * 1024) }),
    413,
    undefined,
  ],
  [
    'invisible characters',
    'POST',
    '/Users',
    JSON.stringify({ schemas: [USER], userName: 'ann\u202e', externalId: 'p' }),
    400,
    'invalidValue',
  ],
  [
    'a name of two scripts',
    'POST',
    '/Users',
    JSON.stringify({ schemas: [USER], userName: '\u0430nn', externalId: 'p' }),
    400,
    'invalidValue',
  ],
  [
    'another separator',
    'POST',
    '/Users',
    JSON.stringify({ schemas: [USER], userName: 'a:b', externalId: 'p' }),
    400,
    'invalidValue',
  ],
  [
    'a number for a text',
    'POST',
    '/Users',
    JSON.stringify({ schemas: [USER], userName: 7, externalId: 'p' }),
    400,
    'invalidValue',
  ],
  ['an unknown filter', 'GET', `/Users?filter=${filter('__proto__ pr')}`, undefined, 400, 'invalidFilter'],
  [
    'a filter that ends early',
    'GET',
    `/Users?filter=${filter('userName eq "')}`,
    undefined,
    400,
    'invalidFilter',
  ],
  [
    'a filter with backslashes',
    'GET',
    `/Users?filter=${filter(`userName eq "${'\\'.repeat(4000)}`)}`,
    undefined,
    400,
    'invalidFilter',
  ],
  ['a deep filter', 'GET', `/Users?filter=${filter('('.repeat(2000))}`, undefined, 400, 'invalidFilter'],
  [
    'a comparison that does not fit',
    'GET',
    `/Users?filter=${filter('active gt true')}`,
    undefined,
    400,
    'invalidFilter',
  ],
  ['a page of letters', 'GET', '/Users?count=many', undefined, 400, 'invalidValue'],
] as const)('%s is refused with its reason', async (_, method, path, body, status, scimType) => {
  const answer = await s.scim(method, path, body)
  expect([answer.status, answer.body?.scimType]).toEqual([status, scimType])
  expect(answer.body.schemas).toEqual(['urn:ietf:params:scim:api:messages:2.0:Error'])
})

test.each([
  ['an unknown attribute', { op: 'replace', path: 'nonsense', value: 1 }, 'invalidPath'],
  ['an inherited name', { op: 'add', path: '__proto__.active', value: 1 }, 'invalidPath'],
  ['an attribute that is fixed', { op: 'replace', path: 'id', value: 'x' }, 'mutability'],
  ['membership of the user', { op: 'add', path: 'groups', value: [{ value: 'x' }] }, 'mutability'],
  [
    'a filter that finds nothing',
    { op: 'replace', path: 'emails[value co "zz"].type', value: 'x' },
    'noTarget',
  ],
  ['no path', { op: 'remove' }, 'noTarget'],
  ['another operation', { op: 'move', path: 'active', value: true }, 'invalidSyntax'],
  ['no name left', { op: 'remove', path: 'userName' }, 'invalidValue'],
  ['no truth', { op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
])('a PATCH with %s changes nothing', async (_, operation, scimType) => {
  const ids = await s.scim('GET', `/Users?filter=${filter('userName eq "patched"')}`)
  const made = ids.body.Resources[0] ?? (await s.user('patched'))
  const first = { op: 'replace', path: 'displayName', value: 'changed' }
  const answer = await s.scim('PATCH', `/Users/${made.id}`, patchOf(first, operation))
  expect([answer.status, answer.body.scimType]).toEqual([400, scimType])
  expect((await s.scim('GET', `/Users/${made.id}`)).body.displayName).toBeUndefined()
})

test('any body gets an answer of the protocol', async () => {
  const made = await s.user('fuzzed')
  const words = [
    'schemas',
    'Operations',
    'op',
    'path',
    'value',
    'members',
    'emails',
    'active',
    'emails[type eq "work"]',
    'Replace',
    USER,
    GROUP,
  ]
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(...words, true, null, 1),
      fc.string(),
      fc.array(tie('value'), { maxLength: 3 }),
      tie('object'),
    ),
    object: fc.dictionary(fc.constantFrom(...words), tie('value'), { maxKeys: 4 }),
  })).object
  const path = fc.constantFrom('/Users', `/Users/${made.id}`, '/Groups', '/.search')
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom('POST', 'PUT', 'PATCH'),
      path,
      value,
      fc.boolean(),
      async (method, at, body, isPatch) => {
        const answer = await s.scim(
          method,
          at,
          isPatch ? { ...(body as object), ...patchOf(body as object) } : body,
        )
        expect([200, 201, 204, 400, 404, 409], answer.text).toContain(answer.status)
      },
    ),
    { numRuns: times(60, 3000) },
  )
})

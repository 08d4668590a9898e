import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ERRORS } from '../../src/api/errors.ts'
import { MAX_BODY } from '../../src/api/limits.ts'
import { ROUTES } from '../../src/api/routes.ts'
import { PROFILES } from '../../src/model/objects.ts'
import { FACTORY_PROFILES, FEATURES } from '../../src/model/profiles.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const post = (path: string, body: unknown): Promise<Answer> => h.call('POST', path, { cookie, body })
const put = (path: string, body: unknown): Promise<Answer> => h.call('PUT', path, { cookie, body })
const get = (path: string): Promise<Answer> => h.call('GET', path, { cookie })

describe('docs/api.md', () => {
  const text = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
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
  const text = readFileSync(new URL('../../docs/api.md', import.meta.url), 'utf8')
  const listed = text
    .split('\n')
    .flatMap((line) => /^\| `([A-Z]+ \/\S+)` \| (.*) \|$/.exec(line)?.slice(1, 3).join(' ') ?? [])
  const expected = Object.entries(ROUTES).map(([route, need]) => {
    if (typeof need !== 'string') return `${route} \`${need.feature}\`: ${need.level}`
    return `${route} ${need === 'public' ? 'public' : 'a sign-in'}`
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
    const wrong = await post('/users', { user_name: 'x', user_auths: ['local_password', 'magic'] })
    expect(wrong.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'user_auths/1' }] })
    const missing = await post('/devices', {})
    expect(missing.body.details.map((one: { field: string }) => one.field)).toEqual(['device_name', 'host'])
  })
})

describe('fields whose rule comes later', () => {
  it.each([
    ['/authorizations', { user_group: 'a', target_group: 'b', approval_required: true }, 'approval_required'],
    ['/authorizations', { user_group: 'a', target_group: 'b', subprotocols: ['RDP'] }, 'subprotocols'],
    ['/authorizations', { user_group: 'a', target_group: 'b', is_critical: false }, 'is_critical'],
    ['/users', { user_name: 'x', is_locked: true }, 'is_locked'],
    ['/usergroups', { group_name: 'x', timeframes: ['allthetime'] }, 'timeframes'],
    [
      '/targetgroups',
      { group_name: 'x', session: { interactive_logins: ['a:b'] } },
      'session/interactive_logins',
    ],
    ['/accounts', { account_name: 'x', device: 'y', checkout_policy: 'default' }, 'checkout_policy'],
    ['/accounts', { account_name: 'x', device: 'y', auto_change_password: true }, 'auto_change_password'],
  ])('are refused by name: %s %o', async (path, body, field) => {
    const answer = await post(path, body)
    expect(answer.status).toBe(400)
    expect(answer.body).toMatchObject({ error: 'not_available_yet', details: [{ field }] })
  })

  it('also of services, and the parameter q', async () => {
    await post('/devices', { device_name: 'later', host: '192.0.2.1' })
    const path = '/devices/later/services'
    for (const body of [
      { service_name: 's', protocol: 'RDP' },
      { service_name: 's', protocol: 'SSH', connection_policy: 'SSH' },
    ]) {
      expect((await post(path, body)).body.error).toBe('not_available_yet')
    }
    for (const path of ['/users', '/targets', '/sessions', '/hostkeys', '/devices/later/services']) {
      const answer = await get(`${path}?q=srv*`)
      expect([answer.status, answer.body.error], path).toEqual([400, 'not_available_yet'])
    }
  })
})

describe('conflicts', () => {
  it('of names are 409, without regard to case', async () => {
    expect((await post('/devices', { device_name: 'dup', host: '192.0.2.1' })).status).toBe(201)
    const again = await post('/devices', { device_name: 'DUP', host: '192.0.2.2' })
    expect([again.status, again.body.error]).toEqual([409, 'duplicate'])
    await post('/devices', { device_name: 'other', host: '192.0.2.1' })
    expect((await put('/devices/other', { device_name: 'dup' })).status).toBe(409)
    expect((await put('/devices/other', { device_name: 'OTHER' })).status).toBe(200)
  })

  it('of things in use are 409 and name the users', async () => {
    await post('/accounts', { account_name: 'root', device: 'dup' })
    const answer = await h.call('DELETE', '/devices/dup', { cookie })
    expect([answer.status, answer.body.error]).toEqual([409, 'in_use'])
    expect(answer.body.details[0].message).toContain('root')
    const events = (await h.events('object.delete')).slice(-2)
    expect(events).toMatchObject([{ object: 'dup' }, { object: 'dup', result: 'failure', reason: 'in_use' }])
  })

  it('of a second authorization for a pair are 409, also when many race', async () => {
    await post('/usergroups', { group_name: 'ug' })
    await post('/targetgroups', { group_name: 'tg' })
    const body = { user_group: 'ug', target_group: 'tg', authorize_sessions: true }
    const answers = await Promise.all(Array.from({ length: 10 }, () => post('/authorizations', body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 9 }, () => 409)])
    expect((await post('/authorizations', body)).body.error).toBe('duplicate')
    expect((await get('/authorizations/ug:tg')).body.user_group).toBe('ug')
  })

  it('are none between the first accounts of a device, which make its local domain', async () => {
    await post('/devices', { device_name: 'empty', host: '192.0.2.9' })
    const names = Array.from({ length: 6 }, (_, i) => `first${i}`)
    const answers = await Promise.all(
      names.map((name) => post('/accounts', { account_name: name, device: 'empty' })),
    )
    expect(answers.map(({ status }) => status)).toEqual(names.map(() => 201))
    expect((await get('/devices/empty/localdomains')).body).toHaveLength(1)
  })

  it('of one new name are 409 for all but one, when many race', async () => {
    const body = { account_name: 'race', device: 'dup' }
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/accounts', body)))
    expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array.from({ length: 7 }, () => 409)])
  })
})

describe('references', () => {
  it('to nothing are 400 and name the field', async () => {
    const answer = await post('/usergroups', { group_name: 'refs', users: ['admin', 'nobody'] })
    expect([answer.status, answer.body.error]).toEqual([400, 'unknown_reference'])
    expect(answer.body.details).toEqual([{ field: 'users/1', message: '"nobody" does not exist' }])
    const target = await post('/targetgroups', {
      group_name: 'refs',
      session: { accounts: ['root@local:dup:nope'] },
    })
    expect(target.body).toMatchObject({
      error: 'unknown_reference',
      details: [{ field: 'session/accounts/0' }],
    })
    const form = await post('/targetgroups', { group_name: 'refs', session: { accounts: ['root@dup'] } })
    expect(form.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'session/accounts/0' }] })
  })

  it('to a domain that the device does not have are 400, unless it is local', async () => {
    const answer = await post('/accounts', { account_name: 'x', device: 'dup', domain: 'corp' })
    expect([answer.status, answer.body.error]).toEqual([400, 'unknown_reference'])
    const created = await post('/accounts', { account_name: 'x', device: 'other', domain: 'local' })
    expect(created.body).toMatchObject({ domain: 'local', device: 'OTHER' })
    expect((await get('/devices/other/localdomains')).body).toMatchObject([{ domain_name: 'local' }])
  })

  it('that fit several accounts are 409 with the candidates', async () => {
    await post('/accounts', { account_name: 'root', device: 'other' })
    const answer = await get('/accounts/root@local')
    expect([answer.status, answer.body.error]).toEqual([409, 'ambiguous_reference'])
    expect(answer.body.details.map((one: { message: string }) => one.message).sort()).toEqual([
      'root@local@OTHER',
      'root@local@dup',
    ])
    expect((await get('/accounts/root@local@dup')).status).toBe(200)
  })
})

describe('profiles', () => {
  it('beyond their own cannot be given, changed or removed by an operator', async () => {
    await h.addUser('oper', 'operator')
    await h.addUser('boss', 'product_administrator')
    const asOper = { cookie: await h.signIn('oper') }
    const attempts = [
      await h.call('POST', '/users', {
        ...asOper,
        body: { user_name: 'evil', profile: 'product_administrator' },
      }),
      await h.call('POST', '/users', { ...asOper, body: { user_name: 'evil', profile: 'auditor' } }),
      await h.call('PUT', '/users/oper', { ...asOper, body: { profile: 'product_administrator' } }),
      await h.call('PUT', '/users/boss', { ...asOper, body: { password: 'mine now' } }),
      await h.call('PUT', '/users/boss', { ...asOper, body: { ssh_public_keys: [] } }),
      await h.call('DELETE', '/users/boss', asOper),
    ]
    for (const answer of attempts)
      expect([answer.status, answer.body.error]).toEqual([403, 'profile_exceeds_own'])
    expect(
      (await h.call('POST', '/users', { ...asOper, body: { user_name: 'fine', profile: 'user' } })).status,
    ).toBe(201)
  })
})

describe('times', () => {
  it.each([
    '2031-02-30T00:00:00Z',
    '2031-06-30T23:59:60Z',
    '2031-01-01',
    '2031-01-01T00:00:00',
    'soon',
    '',
    5,
  ])('that are none are refused: %s', async (time) => {
    const answer = await post('/users', { user_name: 'timely', expiration_date: time })
    expect(answer.body).toMatchObject({ error: 'invalid_field' })
    expect(answer.body.details[0].field).toBe('expiration_date')
    expect((await get('/users/timely')).status).toBe(404)
  })

  it('come back in UTC, and null clears them', async () => {
    const created = await post('/users', {
      user_name: 'timely',
      expiration_date: '2031-06-01T02:00:00+02:00',
    })
    expect(created.body.expiration_date).toBe('2031-06-01T00:00:00.000Z')
    expect((await put('/users/timely', { expiration_date: null })).body.expiration_date).toBeNull()
    expect((await get('/users/timely')).body.expiration_date).toBeNull()
  })
})

describe('lists', () => {
  it('page, sort and select', async () => {
    for (const name of ['pa', 'pb', 'pc']) await post('/domains', { domain_name: name })
    const page = await get('/domains?limit=2&offset=1&sort=-domain_name&fields=domain_name')
    expect(page.body).toEqual([{ domain_name: 'pb' }, { domain_name: 'pa' }])
    expect(page.headers['x-total-count']).toBe('3')
    expect((await get('/domains?limit=-1')).body).toHaveLength(3)
  })

  it.each([
    'limit=x',
    'limit=-2',
    'limit=1.5',
    'limit=',
    'limit=1&limit=2',
    'offset=-1',
    'sort=nope',
    'sort=',
    'fields=nope',
    'fields=__proto__',
    'nope=1',
    '__proto__=1',
    'sort=constructor',
  ])('refuse ?%s', async (query) => {
    for (const path of ['/domains', '/devices/dup/services', '/sessions', '/targets']) {
      expect((await get(`${path}?${query}`)).status, path).toBe(400)
    }
  })
})

describe('without the audit log', () => {
  it('nothing is changed, nobody signs in, no secret goes out: 503', async () => {
    await post('/devices', { device_name: 'kept', host: '192.0.2.1', description: 'before' })
    const out = await checkoutEstate()
    h.audit.broken = true
    try {
      const answers = [
        await post('/devices', { device_name: 'never', host: '192.0.2.1' }),
        await put('/devices/kept', { description: 'after' }),
        await h.call('DELETE', '/devices/kept', { cookie }),
        await h.call('POST', '/session', {
          body: { user: 'admin', password: 'correct horse battery staple' },
        }),
        await h.call('POST', '/accounts/vaulted@local@kept/checkout', { cookie }),
      ]
      for (const answer of answers) {
        expect([answer.status, answer.body.error]).toEqual([503, 'audit_unavailable'])
        expect(answer.headers['set-cookie']).toBeUndefined()
        expect(answer.text).not.toContain('s3cret')
      }
    } finally {
      h.audit.broken = false
    }
    expect((await get('/devices/never')).status).toBe(404)
    expect((await get('/devices/kept')).body.description).toBe('before')
    expect(await h.store.checkouts.active(out, h.clock.now)).toEqual([])
  })

  async function checkoutEstate(): Promise<string> {
    const credentials = [{ type: 'password', password: 's3cret' }]
    const account = await post('/accounts', { account_name: 'vaulted', device: 'kept', credentials })
    await post('/usergroups', { group_name: 'vault-users', users: ['admin'] })
    await post('/targetgroups', {
      group_name: 'vault-targets',
      password_retrieval: { accounts: ['vaulted@local@kept'] },
    })
    const pair = {
      user_group: 'vault-users',
      target_group: 'vault-targets',
      authorize_password_retrieval: true,
    }
    expect((await post('/authorizations', pair)).status).toBe(201)
    return account.body.id
  }
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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

describe('what stands below a device', () => {
  it('is called with it in the audit, and has an URL that outlives its names', async () => {
    const call = async (method: string, path: string, body?: unknown) =>
      h.call(method, path, { cookie: await h.signIn(), ...(body === undefined ? {} : { body }) })
    await call('POST', '/devices', { device_name: 'below', host: 'h' })
    const service = await call('POST', '/devices/BELOW/services', { service_name: 's', protocol: 'SSH' })
    const domain = await call('POST', '/devices/below/localdomains', { domain_name: 'd' })
    await call('PUT', '/devices/below/services/s', { port: 2222 })
    await call('PUT', '/devices/below', { device_name: 'renamed' })
    for (const { body } of [service, domain]) {
      expect((await call('GET', body.url.replace(/^\/api\/v3.12/, ''))).body.id).toBe(body.id)
    }
    await call('DELETE', '/devices/renamed/localdomains/d')
    const told = (await h.events()).map(({ event, object_type, object }) => [event, object_type, object])
    expect(told).toContainEqual(['object.create', 'service', 'below:s'])
    expect(told).toContainEqual(['object.update', 'service', 'below:s'])
    expect(told).toContainEqual(['object.create', 'localdomain', 'd@below'])
    expect(told).toContainEqual(['object.delete', 'localdomain', 'd@renamed'])
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

  it('that may change users put nobody into a group', async () => {
    const admin = await h.signIn()
    const rights = { users: 'modify' }
    const desk = { profile_name: 'helpdesk', rights }
    expect((await h.call('POST', '/profiles', { cookie: admin, body: desk })).status).toBe(201)
    const group = { group_name: 'powerful' }
    expect((await h.call('POST', '/usergroups', { cookie: admin, body: group })).status).toBe(201)
    const key = { key_name: 'desk', profile: 'helpdesk' }
    const { api_key } = (await h.call('POST', '/apikeys', { cookie: admin, body: key })).body
    const as = (method: string, path: string, body: unknown) =>
      h.call(method, path, { headers: { 'x-auth-key': api_key }, body })
    const nobody = { profile_name: 'nobody', rights: {} }
    expect((await h.call('POST', '/profiles', { cookie: admin, body: nobody })).status).toBe(201)
    const mole = { user_name: 'mole', profile: 'nobody' }
    for (const groups of [['powerful'], ['unknown']]) {
      const answer = await as('POST', '/users', { ...mole, groups })
      expect([answer.status, answer.body.error]).toEqual([403, 'forbidden'])
    }
    expect((await as('POST', '/users', { ...mole, groups: [] })).status).toBe(201)
    expect((await as('PUT', '/users/mole', { groups: ['powerful'] })).status).toBe(403)
    expect(
      (await h.call('PUT', '/users/mole', { cookie: admin, body: { groups: ['powerful'] } })).status,
    ).toBe(200)
    // Sending back the existing groups changes nothing; omitting one removes the user from it.
    expect((await as('PUT', '/users/mole', { groups: ['powerful'], email: 'm@example.com' })).status).toBe(
      200,
    )
    expect((await as('PUT', '/users/mole', { groups: [] })).status).toBe(403)
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

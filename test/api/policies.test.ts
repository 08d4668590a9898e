/** Custom profiles, policies, and the collections below devices and domains. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newSshKey } from '../../src/host/ssh-keys.ts'
import { FEATURES } from '../../src/model/profile-rights.ts'
import { FACTORY_PROFILES, levelsOf } from '../../src/model/profiles.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
})
afterAll(() => h.close())

const call = (method: string, path: string, body?: unknown): Promise<Answer> =>
  h.call(method, path, { cookie, ...(body === undefined ? {} : { body }) })
const must = async (method: string, path: string, body?: unknown) => {
  const answer = await call(method, path, body)
  expect(answer.status, `${method} ${path}: ${answer.text}`).toBeLessThan(300)
  return answer.body
}

describe('profiles', () => {
  it('from the factory are there, and stay as they are', async () => {
    const listed = await must('GET', '/profiles')
    const byName = Object.fromEntries(listed.map((one: { profile_name: string }) => [one.profile_name, one]))
    for (const [name, rights] of Object.entries(FACTORY_PROFILES)) {
      expect(byName[name]).toMatchObject({ rights, is_factory: true })
    }
    for (const [method, body] of [
      ['PUT', { description: 'x' }],
      ['PUT', { rights: { users: 'none' } }],
      ['DELETE', undefined],
    ] as const) {
      const answer = await call(method, '/profiles/auditor', body)
      expect([answer.status, answer.body.error]).toEqual([409, 'factory_object'])
    }
    expect((await call('POST', '/profiles', { profile_name: 'Auditor' })).status).toBe(409)
  })

  it('of one’s own are given to users and keys, hold at once, and follow a rename', async () => {
    const made = await must('POST', '/profiles', {
      profile_name: 'device-keeper',
      rights: { devices: 'view' },
    })
    expect(made.rights).toMatchObject({ devices: 'view', users: 'none', targets: 'none' })
    await h.addUser('keeper', 'user')
    await must('PUT', '/users/keeper', { profile: 'Device-Keeper' })
    expect((await must('GET', '/users/keeper')).profile).toBe('device-keeper')
    const deviceKeeper = await h.signIn('keeper')
    const status = async (method: string, path: string, body?: unknown) =>
      (await h.call(method, path, { cookie: deviceKeeper, ...(body === undefined ? {} : { body }) })).status
    expect(await status('GET', '/devices')).toBe(200)
    expect(await status('GET', '/users')).toBe(403)
    expect(await status('POST', '/devices', { device_name: 'x' })).toBe(403)
    await must('PUT', '/profiles/device-keeper', { rights: { devices: 'modify' } })
    expect(await status('POST', '/devices', { device_name: 'kept', host: '192.0.2.9' })).toBe(201)
    const { api_key: key } = await must('POST', '/apikeys', { key_name: 'k', profile: 'device-keeper' })
    await must('PUT', '/profiles/device-keeper', { profile_name: 'machine-keeper' })
    expect((await must('GET', '/users/keeper')).profile).toBe('machine-keeper')
    expect((await must('GET', '/apikeys/k')).profile).toBe('machine-keeper')
    expect(await status('GET', '/devices')).toBe(200)
    expect((await h.call('GET', '/devices', { headers: { 'x-auth-key': key } })).status).toBe(200)
    expect((await h.call('GET', '/users', { headers: { 'x-auth-key': key } })).status).toBe(403)
    const refused = await call('DELETE', '/profiles/machine-keeper')
    expect(refused.body).toMatchObject({
      error: 'in_use',
      details: [{ message: 'user "keeper"' }, { message: 'API key "k"' }],
    })
  })

  it('meet as the lower level of key and user, feature by feature', async () => {
    await must('POST', '/profiles', { profile_name: 'half', rights: { devices: 'modify', users: 'view' } })
    await must('POST', '/profiles', {
      profile_name: 'other-half',
      rights: { devices: 'view', accounts: 'view' },
    })
    const { api_key: key } = await must('POST', '/apikeys', { key_name: 'half', profile: 'half' })
    await h.addUser('other', 'user')
    await must('PUT', '/users/other', { profile: 'other-half' })
    const headers = { 'x-auth-key': key, 'x-auth-user': 'other' }
    const { body } = await h.call('GET', '/session', { headers })
    expect(body).toMatchObject({ profile: 'other-half+half' })
    const expected = Object.fromEntries(FEATURES.map((one) => [one, one === 'devices' ? 'view' : 'none']))
    expect(body.rights).toEqual(expected)
  })

  it('of gateways see sessions, secrets and the audit by their scope', async () => {
    const scopes = {
      sallyport_access_manager_session_audit: { targets: 200, approvals: 200, sessions: 200, users: 403 },
      sallyport_access_manager_session: { targets: 200, approvals: 200, sessions: 403, users: 403 },
      sallyport_access_manager_audit: { targets: 403, approvals: 403, sessions: 200, users: 403 },
    }
    await h.addUser('person', 'product_administrator')
    for (const [profile, scope] of Object.entries(scopes)) {
      const { api_key: key } = await must('POST', '/apikeys', { key_name: `gw-${profile.length}`, profile })
      const headers = { 'x-auth-key': key, 'x-auth-user': 'person' }
      for (const [path, status] of Object.entries(scope)) {
        expect((await h.call('GET', `/${path}`, { headers })).status, `${profile} ${path}`).toBe(status)
      }
      // The lower rights apply: here the user's.
      const few = { 'x-auth-key': key, 'x-auth-user': 'keeper' }
      expect((await h.call('GET', '/sessions', { headers: few })).status).toBe(403)
    }
  })

  it('beyond one’s own can be neither made nor given nor changed', async () => {
    await must('POST', '/profiles', {
      profile_name: 'profiler',
      rights: { profiles: 'modify', users: 'modify', devices: 'view' },
    })
    await h.addUser('profiler', 'user')
    await must('PUT', '/users/profiler', { profile: 'profiler' })
    const own = await h.signIn('profiler')
    const as = (method: string, path: string, body?: unknown) =>
      h.call(method, path, { cookie: own, ...(body === undefined ? {} : { body }) })
    const attempts = [
      as('POST', '/profiles', { profile_name: 'p1', rights: { devices: 'modify' } }),
      as('PUT', '/profiles/profiler', { rights: { sessions: 'execute' } }),
      as('PUT', '/profiles/machine-keeper', { rights: { devices: 'none' } }),
      as('DELETE', '/profiles/half'),
      as('PUT', '/users/profiler', { profile: 'operator' }),
      as('PUT', '/users/admin', { password: 'mine now' }),
    ]
    for (const answer of await Promise.all(attempts)) {
      expect([answer.status, answer.body.error], answer.text).toEqual([403, 'profile_exceeds_own'])
    }
    expect((await as('POST', '/profiles', { profile_name: 'p2', rights: { devices: 'view' } })).status).toBe(
      201,
    )
  })

  it('refuse levels that a feature does not have', async () => {
    expect(levelsOf('targets')).toEqual(['none', 'view'])
    const answer = await call('POST', '/profiles', { profile_name: 'x', rights: { targets: 'modify' } })
    expect(answer.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'rights/targets' }] })
  })
})

describe('the last administrator', () => {
  it.each([
    ['PUT', { is_disabled: true }],
    ['PUT', { profile: 'operator' }],
    ['PUT', { expiration_date: '2031-06-01T00:00:00Z' }],
    ['PUT', { user_auths: [] }],
    // A user without password cannot sign in to the API.
    ['PUT', { user_auths: ['local_sshkey'] }],
    ['DELETE', undefined],
  ])('cannot be lost by %s %o', async (method, body) => {
    await call('DELETE', '/users/person')
    const ghost = { user_name: 'ghost', profile: 'product_administrator' }
    expect([201, 409]).toContain((await call('POST', '/users', ghost)).status)
    const answer = await call(method, '/users/admin', body)
    expect([answer.status, answer.body.error]).toEqual([409, 'last_administrator'])
    expect(await must('GET', '/users/admin')).toMatchObject({ is_disabled: false, expiration_date: null })
    expect((await h.events(method === 'PUT' ? 'object.update' : 'object.delete')).at(-1)).toMatchObject({
      object: 'admin',
      result: 'failure',
      reason: 'last_administrator',
    })
  })

  it('can, with another one beside; of two who go at the same moment one stays', async () => {
    await h.addUser('second', 'product_administrator')
    await must('DELETE', '/users/ghost')
    const both = await Promise.all([
      call('PUT', '/users/admin', { profile: 'operator' }),
      call('PUT', '/users/second', { profile: 'operator' }),
    ])
    expect(both.map(({ status }) => status).sort()).not.toEqual([200, 200])
    const left = await h.store.users.list()
    expect(left.items.filter(({ profile }) => profile === 'product_administrator')).toHaveLength(1)
    await h.store.users.update((await h.store.users.find('admin'))!.id, { profile: 'product_administrator' })
    cookie = await h.signIn()
  })
})

describe('checkout policies', () => {
  const account = { account_name: 'root', device: 'srv1', credentials: [{ type: 'password', password: 'p' }] }
  let ops: string[]
  beforeAll(async () => {
    await must('POST', '/devices', { device_name: 'srv1', host: '192.0.2.1' })
    await must('POST', '/devices/srv1/services', { service_name: 'ssh', protocol: 'SSH' })
    await must('POST', '/accounts', account)
    await must('POST', '/usergroups', { group_name: 'ops' })
    for (const name of ['o1', 'o2']) {
      await h.addUser(name, 'user')
      await must('PUT', `/users/${name}`, { groups: ['ops'] })
    }
    await must('POST', '/targetgroups', {
      group_name: 'tg',
      password_retrieval: { accounts: ['root@local'] },
    })
    await must('POST', '/authorizations', {
      user_group: 'ops',
      target_group: 'tg',
      authorize_password_retrieval: true,
    })
    ops = [await h.signIn('o1'), await h.signIn('o2')]
  })

  const checkout = (who: number) =>
    h.call('POST', '/accounts/root@local/checkout', { cookie: ops[who] ?? '' })

  it('hold by default for an hour, for everybody at once', async () => {
    expect((await must('GET', '/accounts/root@local')).checkout_policy).toBe('default')
    const [one, two] = [await checkout(0), await checkout(1)]
    expect([one.status, two.status]).toEqual([200, 200])
    expect(Date.parse(one.body.expires)).toBe(h.clock.now + 3_600_000)
    h.clock.now += 3_600_000
    ops = [await h.signIn('o1'), await h.signIn('o2')]
    cookie = await h.signIn()
  })

  it('lock: of many clients at once one gets the secret, until it is back or its time is over', async () => {
    await must('POST', '/checkoutpolicies', { policy_name: 'single', enable_lock: true, max_duration: 90 })
    await must('PUT', '/accounts/root@local', { checkout_policy: 'single' })
    const answers = await Promise.all([checkout(0), checkout(1), checkout(0), checkout(1)])
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409])
    const got = answers.findIndex(({ status }) => status === 200)
    const { checkout_id, expires } = answers[got]!.body
    expect(Date.parse(expires)).toBe(h.clock.now + 90_000)
    expect((await checkout(0)).body.error).toBe('checked_out')
    expect((await h.events('checkout.denied')).at(-1)?.['reason']).toContain('its policy locks it')
    const back = { cookie: ops[got % 2] ?? '', body: { checkout_id } }
    expect((await h.call('POST', '/accounts/root@local/checkin', back)).status).toBe(204)
    expect((await checkout(1)).status).toBe(200)
    h.clock.now += 90_000
    expect((await checkout(0)).status).toBe(200)
  })

  it('are named by their accounts: renamed with them, not removed under them', async () => {
    await must('PUT', '/checkoutpolicies/single', { policy_name: 'one-at-a-time' })
    expect((await must('GET', '/accounts/root@local')).checkout_policy).toBe('one-at-a-time')
    expect((await call('DELETE', '/checkoutpolicies/one-at-a-time')).body).toMatchObject({
      error: 'in_use',
      details: [{ message: 'account "root@local"' }],
    })
    const renamed = await call('PUT', '/checkoutpolicies/default', { policy_name: 'mine' })
    expect(renamed.body.error).toBe('factory_object')
    expect((await call('DELETE', '/checkoutpolicies/default')).body.error).toBe('factory_object')
    await must('PUT', '/accounts/root@local', { checkout_policy: 'default' })
    await must('DELETE', '/checkoutpolicies/one-at-a-time')
    const unknown = await call('PUT', '/accounts/root@local', { checkout_policy: 'one-at-a-time' })
    expect(unknown.body).toMatchObject({
      error: 'unknown_reference',
      details: [{ field: 'checkout_policy' }],
    })
  })
})

describe('connection policies', () => {
  it('hold the authorities for host keys, as lines of public keys and nothing else', async () => {
    const line = newSshKey('ed25519').public.trim()
    await must('POST', '/connectionpolicies', { policy_name: 'certified', host_ca_keys: [line] })
    expect(await must('GET', '/connectionpolicies/certified')).toMatchObject({ host_ca_keys: [line] })
    const { status, body } = await call('PUT', '/connectionpolicies/certified', {
      host_ca_keys: [line, 'ssh-ed25519 AAAA'],
    })
    expect([status, body]).toMatchObject([
      400,
      { error: 'invalid_field', details: [{ field: 'host_ca_keys/1' }] },
    ])
  })

  it('bound what a session records, and say who is told that it is watched', async () => {
    const quotas = {
      recording_quota: 64 * 1024 * 1024,
      past_recording_quota: 'hash',
      terminal_quota: 1024 * 1024 * 1024,
      past_terminal_quota: 'end',
      past_min_free: 'end',
      tell_watched: true,
    }
    expect(await must('GET', '/connectionpolicies/SSH')).toMatchObject(quotas)
    const others = {
      recording_quota: 65_536,
      past_terminal_quota: 'hash',
      past_min_free: 'go_on',
      tell_watched: false,
    }
    await must('POST', '/connectionpolicies', { policy_name: 'quotas', ...others })
    expect(await must('GET', '/connectionpolicies/quotas')).toMatchObject({ ...quotas, ...others })
    const bad = [{ recording_quota: 0 }, { terminal_quota: 2 ** 50 }, { past_terminal_quota: 'drop' }]
    for (const body of bad) {
      expect((await call('PUT', '/connectionpolicies/quotas', body)).status).toBe(400)
    }
    await must('DELETE', '/connectionpolicies/quotas')
  })

  it('of authorizations: strict recording needs a recording', async () => {
    await must('POST', '/usergroups', { group_name: 'strict-ug' })
    await must('POST', '/targetgroups', { group_name: 'strict-tg' })
    const pair = { user_group: 'strict-ug', target_group: 'strict-tg' }
    const none = await call('POST', '/authorizations', {
      ...pair,
      is_recorded: false,
      recording_mode: 'strict',
    })
    expect(none).toMatchObject({ status: 400, body: { error: 'invalid_field' } })
    expect(await must('POST', '/authorizations', pair)).toMatchObject({ recording_mode: 'standard' })
    const path = '/authorizations/strict-ug:strict-tg'
    expect(await must('PUT', path, { recording_mode: 'strict' })).toMatchObject({ recording_mode: 'strict' })
    expect((await call('PUT', path, { is_recorded: false })).status).toBe(400)
    await must('PUT', path, { is_recorded: false, recording_mode: 'standard' })
    const unknown = await call('PUT', path, { recording_mode: 'lax' })
    expect(unknown.status).toBe(400)
  })

  it('say what is done about host keys, unless the service does', async () => {
    const read = async () => must('GET', '/devices/srv1/services/ssh')
    expect(await read()).toMatchObject({ connection_policy: 'SSH', host_key_policy: null })
    const policy = async () => {
      const user = (await h.store.users.find('o1'))!
      const [row] = await h.store.access.sessionTargets(user.id, 0)
      return row?.hostKeyPolicy
    }
    await must('PUT', '/targetgroups/tg', { session: { accounts: ['root@local:srv1:ssh'] } })
    await must('PUT', '/authorizations/ops:tg', { authorize_sessions: true })
    expect(await policy()).toBe('first_sight')
    await must('POST', '/connectionpolicies', { policy_name: 'strict', host_key_policy: 'pinned' })
    await must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'strict' })
    expect(await policy()).toBe('pinned')
    await must('PUT', '/devices/srv1/services/ssh', { host_key_policy: 'first_sight' })
    expect(await policy()).toBe('first_sight')
    await must('PUT', '/devices/srv1/services/ssh', { host_key_policy: null })
    expect(await policy()).toBe('pinned')
    await must('PUT', '/connectionpolicies/strict', { policy_name: 'severe' })
    expect((await read()).connection_policy).toBe('severe')
    expect((await call('DELETE', '/connectionpolicies/severe')).body).toMatchObject({
      error: 'in_use',
      details: [{ message: 'service "srv1:ssh"' }],
    })
    expect((await call('DELETE', '/connectionpolicies/SSH')).body.error).toBe('factory_object')
    expect(await must('GET', '/connectionpolicies/SSH')).toMatchObject({ idle_timeout: 0, max_duration: 0 })
    const limits = { idle_timeout: 900, max_duration: 28_800 }
    await must('POST', '/connectionpolicies', { policy_name: 'office', ...limits })
    await must('PUT', '/connectionpolicies/office', { idle_timeout: 600 })
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({ ...limits, idle_timeout: 600 })
    expect((await call('PUT', '/connectionpolicies/office', { idle_timeout: -1 })).status).toBe(400)
    const command_rules = ['notify \\bsudo\\b', 'kill rm\\s+-\\S*r']
    await must('PUT', '/connectionpolicies/office', { command_rules })
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({
      idle_timeout: 600,
      command_rules,
    })
    for (const [rule, message] of [
      ['kill a(b', 'at character 6: missing closing )'],
      [
        'forbid x',
        'at character 1: expected "notify REGEX", "ask REGEX" or "kill REGEX", with one space between',
      ],
      [`kill ${'(x{1000}y)'.repeat(3)}`, 'with this rule the expressions take too much work'],
    ] as const) {
      const refused = await call('PUT', '/connectionpolicies/office', { command_rules: ['kill ok', rule] })
      expect(refused.status).toBe(400)
      expect(refused.body.details[0]).toMatchObject({ field: 'command_rules/1' })
      expect(refused.body.details[0].message).toContain(message)
    }
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({
      forward_to: [],
      listen_on: ['localhost:*', '127.0.0.1:*', '[::1]:*'],
    })
    const rules = { forward_to: ['*.example.com:443', '10.0.0.0/8:1-1023'], listen_on: [] }
    await must('PUT', '/connectionpolicies/office', rules)
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({
      ...limits,
      idle_timeout: 600,
      ...rules,
    })
    const flawed = await call('PUT', '/connectionpolicies/office', {
      forward_to: ['ok:1', 'host', '10.0.0.0/40:1'],
    })
    expect(flawed).toMatchObject({
      status: 400,
      body: { error: 'invalid_field', details: [{ field: 'forward_to/1' }, { field: 'forward_to/2' }] },
    })
    await must('PUT', '/connectionpolicies/office', { subsystems: ['netconf', 'netconf', 'x@example.com'] })
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({
      subsystems: ['netconf', 'x@example.com'],
    })
    const misnamed = ['netconf', 'sftp', 'net conf', '', 'a,b', 'ä']
    expect(await call('PUT', '/connectionpolicies/office', { subsystems: misnamed })).toMatchObject({
      status: 400,
      body: { details: [1, 2, 3, 4, 5].map((at) => ({ field: `subsystems/${at}` })) },
    })
    const file_rules = ['allow up /srv/in/** size<=10MiB', 'deny any /**']
    await must('PUT', '/connectionpolicies/office', { file_rules })
    expect(await must('GET', '/connectionpolicies/office')).toMatchObject({ idle_timeout: 600, file_rules })
    expect(
      (await call('PUT', '/connectionpolicies/office', { file_rules: [...file_rules, 'deny up ~/x'] })).body,
    ).toMatchObject({
      error: 'invalid_field',
      details: [{ field: 'file_rules/2', message: expect.stringMatching(/^at offset 8: expected an absol/) }],
    })
    await must('PUT', '/connectionpolicies/SSH', { host_key_policy: 'pinned' })
    await must('PUT', '/devices/srv1/services/ssh', { connection_policy: 'SSH' })
    expect(await policy()).toBe('pinned')
  })
})

describe('accounts below their place', () => {
  it('of a device, of a local domain and of a global one', async () => {
    await must('POST', '/domains', { domain_name: 'corp' })
    await must('POST', '/devices', { device_name: 'srv2', host: '192.0.2.2' })
    await must('POST', '/devices/srv2/localdomains', { domain_name: 'db' })
    const onDevice = await must('POST', '/devices/srv2/accounts', { account_name: 'root' })
    expect(onDevice).toMatchObject({ device: 'srv2', domain: 'local' })
    expect(onDevice.url).toBe(`/api/v3.12/accounts/${onDevice.id}`)
    const path = '/devices/srv2/localdomains/db/accounts'
    expect(await must('POST', path, { account_name: 'dba' })).toMatchObject({ device: 'srv2', domain: 'db' })
    const global = await must('POST', '/domains/corp/accounts', { account_name: 'svc' })
    expect(global).toMatchObject({ device: null, domain: 'corp' })
    expect((await h.events('object.create')).at(-1)).toMatchObject({ object: 'svc@corp' })

    const names = async (path: string) =>
      (await must('GET', path)).map((one: { account_name: string }) => one.account_name)
    expect(await names('/devices/srv2/accounts')).toEqual(['dba', 'root'])
    expect(await names('/devices/srv2/accounts?q=account_name=root')).toEqual(['root'])
    expect(await names(path)).toEqual(['dba'])
    expect(await names('/domains/corp/accounts')).toEqual(['svc'])

    expect((await must('GET', '/devices/srv2/accounts/root')).id).toBe(onDevice.id)
    expect((await must('GET', '/devices/srv2/accounts/root@local')).id).toBe(onDevice.id)
    expect((await must('PUT', `${path}/dba`, { description: 'x' })).description).toBe('x')
    await must('DELETE', '/domains/corp/accounts/svc')

    // Objects of another device do not exist here.
    expect((await call('GET', '/devices/srv2/accounts/root@local@srv1')).status).toBe(404)
    expect((await call('GET', `/devices/srv1/accounts/${onDevice.id}`)).status).toBe(404)
    expect((await call('GET', `${path}/root`)).status).toBe(404)
    expect((await call('GET', `/domains/corp/accounts/${onDevice.id}`)).status).toBe(404)
    expect((await call('GET', '/domains/db/accounts')).status).toBe(404)
    expect((await call('GET', '/devices/srv1/localdomains/db/accounts')).status).toBe(404)
    expect(
      (await call('POST', '/devices/srv2/accounts', { account_name: 'a', device: 'srv1' })).body,
    ).toMatchObject({
      error: 'invalid_field',
      details: [{ field: 'device' }],
    })
    const both = await call('POST', '/domains/corp/accounts', { account_name: 'a', device: 'srv2' })
    expect(both.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'device' }] })
  })
})

describe('approvals', () => {
  it('answer with what there is', async () => {
    expect(await must('GET', '/approvals')).toEqual([])
    expect((await call('GET', '/approvals/x')).status).toBe(404)
  })
})

describe('timeframes', () => {
  it('have the one from the factory, which stays as it is', async () => {
    const [only] = await must('GET', '/timeframes')
    expect(only).toMatchObject({ timeframe_name: 'allthetime', is_factory: true, is_overtimable: false })
    expect(await must('GET', '/timeframes/AllTheTime')).toEqual(only)
    expect(await must('GET', `/timeframes/${only.id}`)).toEqual(only)
    expect((await call('PUT', '/timeframes/allthetime', { description: 'x' })).body.error).toBe(
      'factory_object',
    )
    expect((await call('DELETE', '/timeframes/allthetime')).body.error).toBe('factory_object')
  })

  it('are made, changed, and removed when no group has them', async () => {
    await must('POST', '/timeframes', {
      timeframe_name: 'office',
      time_zone: 'Europe/Paris',
      periods: [
        {
          start_date: '2026-01-01',
          end_date: '2026-12-31',
          start_time: '08:00',
          end_time: '18:00',
          week_days: ['friday', 'monday'],
        },
        {},
      ],
    })
    const all = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday']
    expect(await must('GET', '/timeframes/office')).toMatchObject({
      description: '',
      is_overtimable: false,
      time_zone: 'Europe/Paris',
      periods: [
        {
          start_date: '2026-01-01',
          end_date: '2026-12-31',
          start_time: '08:00',
          end_time: '18:00',
          week_days: ['monday', 'friday'],
        },
        { start_time: '00:00', end_time: '24:00', week_days: all },
      ],
      is_factory: false,
    })
    expect(await must('GET', '/timeframes?q=time_zone~paris')).toHaveLength(1)
    await must('POST', '/usergroups', { group_name: 'day-shift', timeframes: ['office', 'allthetime'] })
    const group = await must('GET', '/usergroups/day-shift')
    expect(group.timeframes).toEqual(['allthetime', 'office'])
    expect(await must('GET', '/usergroups?q=timeframes=office')).toMatchObject([{ group_name: 'day-shift' }])
    expect((await call('DELETE', '/timeframes/office')).body).toMatchObject({
      error: 'in_use',
      details: [{ message: 'user group "day-shift"' }],
    })
    await must('PUT', '/timeframes/office', { timeframe_name: 'hours', is_overtimable: true })
    expect((await must('GET', '/usergroups/day-shift')).timeframes).toEqual(['allthetime', 'hours'])
    await must('PUT', '/usergroups/day-shift', { timeframes: [] })
    expect((await must('GET', '/usergroups/day-shift')).timeframes).toEqual(['allthetime'])
    expect(await must('GET', '/usergroups?q=timeframes=allthetime')).toContainEqual(
      expect.objectContaining({ group_name: 'day-shift' }),
    )
    await must('DELETE', '/timeframes/hours')
    await must('DELETE', '/usergroups/day-shift')
  })

  it.each([
    [{ periods: [] }, 'periods'],
    [{ periods: [{}], time_zone: 'Mars/Olympus' }, 'time_zone'],
    [{ periods: [{}], time_zone: '+02:00' }, 'time_zone'],
    [{ periods: [{}, { start_date: '2026-02-30' }] }, 'periods/1/start_date'],
    [{ periods: [{ start_date: '2026-02-02', end_date: '2026-02-01' }] }, 'periods/0/end_date'],
    [{ periods: [{ start_time: '24:00' }] }, 'periods/0/start_time'],
    [{ periods: [{ end_time: '24:01' }] }, 'periods/0/end_time'],
    [{ periods: [{ start_time: '08:00', end_time: '08:00' }] }, 'periods/0/end_time'],
    [{ periods: [{ week_days: ['someday'] }] }, 'periods/0/week_days/0'],
    [{ periods: Array.from({ length: 51 }, () => ({})) }, 'periods'],
  ])('name what is wrong with %o', async (body, field) => {
    const answer = await call('POST', '/timeframes', { timeframe_name: 'wrong', ...body })
    expect(answer.status).toBe(400)
    expect(answer.body.details).toMatchObject([{ field }])
  })

  it('of a group have to exist, and an authorization has none', async () => {
    const unknown = await call('POST', '/usergroups', { group_name: 'x', timeframes: ['nowhen'] })
    expect(unknown.body).toMatchObject({ error: 'unknown_reference', details: [{ field: 'timeframes/0' }] })
    const other = await call('POST', '/authorizations', {
      user_group: 'a',
      target_group: 'b',
      timeframes: [],
    })
    expect(other.body.error).toBe('unknown_field')
  })
})

it('a checkout policy loses its duration by null', async () => {
  await must('POST', '/checkoutpolicies', { policy_name: 'lasting', duration: 60, max_duration: 90 })
  expect((await must('GET', '/checkoutpolicies/lasting')).duration).toBe(60)
  await must('PUT', '/checkoutpolicies/lasting', { duration: null })
  expect((await must('GET', '/checkoutpolicies/lasting')).duration).toBeNull()
  await must('DELETE', '/checkoutpolicies/lasting')
})

it('a user is shown as locked by an administrator or by wrong passwords, and unlocked from both', async () => {
  const password = 'of the locked one'
  await must('POST', '/users', { user_name: 'shut', password })
  const isLocked = async () => (await must('GET', '/users/shut')).is_locked
  const signIn = (text: string) => h.call('POST', '/session', { body: { user: 'shut', password: text } })
  expect(await isLocked()).toBe(false)
  await must('PUT', '/users/shut', { is_locked: true })
  expect(await isLocked()).toBe(true)
  expect(await must('GET', '/users?q=is_locked=true')).toHaveLength(1)
  const refused = await signIn(password)
  await must('PUT', '/users/shut', { is_locked: false })
  const wrong = await signIn('wrong')
  expect([refused.status, refused.body]).toEqual([wrong.status, wrong.body])
  expect((await signIn(password)).status).toBe(200)
  for (let attempt = 0; attempt < 10; attempt++) await signIn('wrong')
  expect((await signIn(password)).status).toBe(401)
  expect(await isLocked()).toBe(true)
  // A table that is imported again must not make a lock of it.
  const { text } = await call('GET', '/export/users')
  const [head = [], ...rows] = text
    .slice(1)
    .split(/\r?\n/)
    .map((line) => line.split(/[,;]/))
  const row = rows.find(([name]) => name === 'shut') ?? []
  expect(row[head.indexOf('is_locked')]).toBe('false')
  await must('PUT', '/users/shut', { is_locked: false })
  expect(await isLocked()).toBe(false)
  expect((await signIn(password)).status).toBe(200)
  await must('DELETE', '/users/shut')
})

it('a pair of groups has one authorization, also when many clients ask at once', async () => {
  await must('POST', '/usergroups', { group_name: 'race-u' })
  await must('POST', '/targetgroups', { group_name: 'race-t' })
  const body = { user_group: 'race-u', target_group: 'race-t' }
  const answers = await Promise.all(Array.from({ length: 8 }, () => call('POST', '/authorizations', body)))
  expect(answers.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)])
  expect(answers.filter(({ status }) => status === 409).every(({ body }) => body.error === 'duplicate')).toBe(
    true,
  )
})

/** A user who has or makes an API key and tries to exceed its purpose. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { eventsIn } from '../e2e/bastion.ts'
import { type ApiAnswer, type Broker, callApi, startBroker } from '../peers/broker.ts'
import { until } from '../until.ts'

interface Key {
  id: string
  api_key: string
}

describe('an API key', () => {
  let broker: Broker
  let certificate: Buffer

  beforeAll(async () => {
    broker = await startBroker()
    certificate = readFileSync(join(broker.dataFolder, 'tls', 'cert.pem'))
    for (const [user_name, profile] of [
      ['ops1', 'user'],
      ['ops2', 'user'],
      ['keeper', 'operator'],
      ['boss', 'product_administrator'],
    ]) {
      await broker.must('POST', '/users', { user_name, profile, password: `of ${user_name}, long 7!` })
    }
    await broker.must('POST', '/usergroups', { group_name: 'mates', users: ['ops2'] })
  })
  afterAll(() => broker.stop())

  const make = (key_name: string, more: object = {}) =>
    broker.must<Key>('POST', '/apikeys', { key_name, profile: 'product_administrator', ...more })
  const by = (
    { api_key }: Pick<Key, 'api_key'>,
    method: string,
    path: string,
    { user, body }: { user?: string; body?: unknown } = {},
  ): Promise<ApiAnswer<Record<string, unknown>>> =>
    callApi(broker.ports.https, certificate, method, path, body, {
      'x-auth-key': api_key,
      ...(user !== undefined && { 'x-auth-user': user }),
    })
  const errorOf = ({ status, body }: ApiAnswer<Record<string, unknown>>) => [status, body['error']]
  const BOUND = [403, 'key_is_bound']

  test('that names users and groups acts for nobody else', async () => {
    const key = await make('of-some', { users: ['ops1'], user_groups: ['mates'] })
    for (const user of ['ops1', 'ops2', 'OPS1'])
      expect((await by(key, 'GET', '/targets', { user })).status).toBe(200)
    for (const user of ['boss', 'admin', 'keeper', 'nobody']) {
      expect(errorOf(await by(key, 'GET', '/targets', { user }))).toEqual([401, 'authentication_required'])
    }
    await broker.must('PUT', '/usergroups/mates', { users: [] })
    expect((await by(key, 'GET', '/targets', { user: 'ops2' })).status).toBe(401)
    await broker.must('PUT', '/usergroups/mates', { users: ['boss', 'ops2'] })
    expect((await by(key, 'GET', '/targets', { user: 'ops2' })).status).toBe(200)
    await broker.must('PUT', '/usergroups/mates', { users: ['ops2'] })
  })

  test('that names nobody acts for nobody', async () => {
    const key = await make('of-none', { users: [] })
    expect((await by(key, 'GET', '/users')).status).toBe(200)
    expect((await by(key, 'GET', '/users', { user: 'boss' })).status).toBe(401)
  })

  test('acts for those only whose password its maker could set', async () => {
    await broker.must('POST', '/profiles', {
      profile_name: 'key-keeper',
      rights: { api_keys: 'modify', targets: 'view', users: 'modify', user_groups: 'modify' },
    })
    const maker = await make('maker', { profile: 'key-keeper' })
    const made = (more: object) =>
      by(maker, 'POST', '/apikeys', {
        body: { key_name: `k${Math.random()}`.replace('.', ''), profile: 'key-keeper', ...more },
      })
    expect(errorOf(await made({}))).toEqual([403, 'key_exceeds_own'])
    expect(errorOf(await made({ users: ['boss'] }))).toEqual([403, 'key_exceeds_own'])
    // a group counts with its members, also with later ones
    await broker.must('PUT', '/usergroups/mates', { users: ['ops2', 'boss'] })
    expect(errorOf(await made({ user_groups: ['mates'] }))).toEqual([403, 'key_exceeds_own'])
    await broker.must('PUT', '/usergroups/mates', { users: [] })
    const answer = await made({ user_groups: ['mates'] })
    expect(answer.status).toBe(201)
    await broker.must('PUT', '/usergroups/mates', { users: ['ops2', 'boss'] })
    const key = answer.body as unknown as Key
    expect((await by(key, 'GET', '/session', { user: 'boss' })).status).toBe(401)
    await broker.must('PUT', '/usergroups/mates', { users: ['ops2'] })
    expect(errorOf(await made({ users: ['ops1'], profile: 'operator' }))).toEqual([
      403,
      'profile_exceeds_own',
    ])
  })

  test('of who may make more is neither widened nor moved by who may not', async () => {
    const maker = await make('half', { profile: 'key-keeper' })
    const own = await make('own', { profile: 'key-keeper', users: [] })
    const wide = await make('wide', { profile: 'key-keeper' })
    const change = (key: Key, body: object) => by(maker, 'PUT', `/apikeys/${key.id}`, { body })
    for (const body of [{ users: null }, { users: ['boss'] }, { users: null, user_groups: null }]) {
      expect(errorOf(await change(own, body))).toEqual([403, 'key_exceeds_own'])
    }
    expect(errorOf(await change(wide, { expiration_date: null, ip_source: ['127.0.0.1'] }))).toEqual([
      403,
      'key_exceeds_own',
    ])
    expect((await change(wide, { users: [] })).status).toBe(200)
  })

  describe('that is bound to addresses', () => {
    const bound = (name: string) => make(name, { ip_source: ['127.0.0.0/8'] })

    test.each([
      ['users who come from anywhere', { password: 'long enough for anybody 7' }],
      [
        'users who come from elsewhere',
        { password: 'long enough for anybody 7', ip_source: ['127.0.0.1', '10.0.0.0/8'] },
      ],
      [
        'users who come from a wider network',
        { password: 'long enough for anybody 7', ip_source: ['126.0.0.0/7'] },
      ],
    ])('makes no %s', async (_, fields) => {
      const key = await bound(`bound-${Math.random()}`.replace('.', ''))
      const body = { user_name: 'backdoor', profile: 'product_administrator', ...fields }
      expect(errorOf(await by(key, 'POST', '/users', { body }))).toEqual(BOUND)
    })

    test('makes users within its own addresses, and such that cannot sign in yet', async () => {
      const key = await bound('bound-maker')
      const within = {
        user_name: 'local1',
        password: 'long enough for anybody 7',
        ip_source: ['127.0.0.0/16'],
      }
      expect((await by(key, 'POST', '/users', { body: within })).status).toBe(201)
      expect((await by(key, 'POST', '/users', { body: { user_name: 'local2' } })).status).toBe(201)
      // and neither user may leave these bounds
      for (const [name, body] of [
        ['local1', { ip_source: [] }],
        ['local1', { ip_source: ['127.0.0.0/16', '192.0.2.1'] }],
        ['local2', { password: 'long enough for anybody 7' }],
        [
          'local2',
          {
            ssh_public_keys: [
              'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBPQTBQZmYqgBXHXxgHqTbOyGdRYxfWWlQGcXl6bSx5C x',
            ],
          },
        ],
      ] as const) {
        expect(errorOf(await by(key, 'PUT', `/users/${name}`, { body }))).toEqual(BOUND)
      }
    })

    test('takes over nobody who comes from anywhere, and still takes away', async () => {
      const key = await bound('bound-changer')
      await broker.must('PUT', '/users/ops2', { is_disabled: true })
      for (const body of [
        { password: 'long enough for anybody 7' },
        { is_disabled: false },
        { user_name: 'ops1-by-certificate' },
      ]) {
        expect(errorOf(await by(key, 'PUT', '/users/ops2', { body }))).toEqual(BOUND)
      }
      expect(
        (await by(key, 'PUT', '/users/ops1', { body: { is_disabled: true, ssh_public_keys: [] } })).status,
      ).toBe(200)
      await broker.must('PUT', '/users/ops1', { is_disabled: false })
      await broker.must('PUT', '/users/ops2', { is_disabled: false })
    })

    test('gets no ticket for another address', async () => {
      const key = await bound('bound-gateway')
      const asked = { protocol: 'VNC', client_ip: '203.0.113.9' }
      const answer = await by(key, 'POST', '/targets/root@local:srv9:vnc/ticket', {
        user: 'ops1',
        body: asked,
      })
      expect(errorOf(answer)).toEqual(BOUND)
    })

    test.each([
      ['addresses', { ip_source: ['127.0.0.0/8'] }],
      ['a time', { expiration_date: '2999-01-01T00:00:00Z' }],
      ['users', { users: ['ops1'] }],
    ])('or to %s makes no other key', async (what, more) => {
      const key = await make(`bound-to-${what.replace(' ', '-')}`, more)
      const body = { key_name: 'free', profile: 'user', users: [] }
      expect(errorOf(await by(key, 'POST', '/apikeys', { body }))).toEqual(BOUND)
    })
  })

  test('is named in all that it does, in a user’s name too, and is what nobody else is taken for', async () => {
    const key = await make('named')
    const device = { device_name: 'srv7', host: '192.0.2.7' }
    expect((await by(key, 'POST', '/devices', { user: 'boss', body: device })).status).toBe(201)
    expect((await by(key, 'DELETE', '/devices/srv7')).status).toBe(204)
    await broker.must('POST', '/devices', { device_name: 'srv8', host: '192.0.2.8' })
    const told = await until('the events', () => {
      const found = eventsIn(broker.log()).filter(({ object_type: type }) => type === 'device')
      return found.length >= 3 ? found : undefined
    })
    expect(told.map(({ event, user, api_key }) => [event, user, api_key])).toEqual([
      ['object.create', 'boss', 'named'],
      ['object.delete', 'key:named', 'named'],
      ['object.create', 'admin', undefined],
    ])
    expect((await by(key, 'GET', '/session', { user: 'nobody' })).status).toBe(401)
    const failures = await until('the failure', () => {
      const found = eventsIn(broker.log()).filter(
        ({ event, user, api_key }) => event === 'auth.failure' && user === 'nobody' && api_key === 'named',
      )
      return found.length > 0 ? found : undefined
    })
    expect(failures).toMatchObject([{ reason: 'unknown user' }])
  })

  test('gets no answer that was kept for the user in whose name it comes', async () => {
    const key = await make('replaying')
    const body = { device_name: 'once', host: '192.0.2.9' }
    const headers = { 'idempotency-key': 'the-same-one' }
    const post = (more: Record<string, string>) =>
      callApi<Record<string, unknown>>(broker.ports.https, certificate, 'POST', '/devices', body, {
        ...headers,
        ...more,
      })
    const signedIn = await callApi(broker.ports.https, certificate, 'POST', '/session', {
      user: 'boss',
      password: 'of boss, long 7!',
    })
    const cookie = [signedIn.headers['set-cookie'] ?? []].flat()[0]?.split(';')[0] ?? ''
    expect((await post({ cookie })).status).toBe(201)
    expect((await post({ cookie })).status).toBe(201)
    expect((await post({ 'x-auth-key': key.api_key, 'x-auth-user': 'boss' })).status).toBe(409)
    expect((await post({ 'x-auth-key': key.api_key })).status).toBe(409)
  })
})

import ssh2 from 'ssh2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CheckoutExpiry } from '../../src/broker/checkout-expiry.ts'
import type { SessionRecord } from '../../src/model/objects.ts'
import { opensshKey } from '../identity/keys.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

let h: Harness
let admin: string
let ops: string
beforeAll(async () => {
  h = await startHarness()
  admin = await h.signIn()
  for (const name of ['ops1', 'ops2']) await h.addUser(name, 'user')
  await must('/devices', { device_name: 'srv1', host: '192.0.2.1' })
  await must('/devices', { device_name: 'srv2', host: '192.0.2.2' })
  await must('/devices/srv1/services', { service_name: 'ssh', protocol: 'SSH' })
  const credentials = [{ type: 'password', password: 'canary-7f3a' }]
  for (const device of ['srv1', 'srv2'])
    await must('/accounts', { account_name: 'root', device, credentials })
  await must('/accounts', { account_name: 'bare', device: 'srv1' })
  await must('/usergroups', { group_name: 'ops', users: ['ops1', 'ops2'] })
  await must('/targetgroups', {
    group_name: 'targets',
    session: { accounts: ['root@local:srv1:ssh'] },
    password_retrieval: { accounts: ['bare@local@srv1'] },
  })
  await must('/authorizations', {
    user_group: 'ops',
    target_group: 'targets',
    authorize_password_retrieval: true,
  })
  ops = await h.signIn('ops1')
})
afterAll(() => h.close())

async function must(path: string, body: unknown): Promise<Answer> {
  const answer = await h.call('POST', path, { cookie: admin, body })
  expect(answer.status, answer.text).toBe(201)
  return answer
}
const checkout = (ref: string, cookie = ops) => h.call('POST', `/accounts/${ref}/checkout`, { cookie })
const checkin = (ref: string, id: string, cookie = ops) =>
  h.call('POST', `/accounts/${ref}/checkin`, { cookie, body: { checkout_id: id } })

const wish = (ref: string, body: unknown, cookie = ops) =>
  h.call('POST', `/accounts/${ref}/checkout`, { cookie, body })
const extend = (ref: string, id: string, cookie = ops) =>
  h.call('POST', `/accounts/${ref}/extend`, { cookie, body: { checkout_id: id } })

/** Makes an account of srv1 that ops may check out, with a policy of its own, both of that name. */
async function policyOf(
  name: string,
  policy: Record<string, unknown>,
  credentials: unknown = [{ type: 'password', password: `canary-${name}` }],
): Promise<void> {
  await must('/checkoutpolicies', { policy_name: name, ...policy })
  await must('/accounts', { account_name: name, device: 'srv1', checkout_policy: name, credentials })
  const accounts = [`${name}@local@srv1`]
  await must('/targetgroups', { group_name: name, password_retrieval: { accounts } })
  const pair = { user_group: 'ops', target_group: name }
  await must('/authorizations', { ...pair, authorize_password_retrieval: true })
}

const SESSION: Omit<SessionRecord, 'id' | 'user' | 'begin'> = {
  sourceIp: '192.0.2.7',
  protocol: 'SSH',
  subprotocols: [],
  account: 'root',
  domain: 'local',
  device: 'srv1',
  service: 'ssh',
  targetHost: '192.0.2.1',
  authorization: 'ops:targets',
  isRecorded: false,
  bytesIn: 0,
  bytesOut: 0,
}

describe('checkout', () => {
  it('hands the secret to whom an authorization lets, and it is in the audit first', async () => {
    const answer = await checkout('root@local@srv1')
    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ login: 'root', password: 'canary-7f3a' })
    expect(Date.parse(answer.body.expires)).toBeGreaterThan(h.clock.now)
    expect(answer.headers['cache-control']).toBe('no-store')
    expect((await h.events('checkout.out')).at(-1)).toMatchObject({
      user: 'ops1',
      account: 'root',
      domain: 'local',
      device: 'srv1',
      object: answer.body.checkout_id,
    })
  })

  it('resolves a short reference to the one account that the caller may have, though others are called so', async () => {
    expect((await checkout('root@local')).status).toBe(200)
  })

  it('gives the same answer for what does not exist and what is not allowed, and the audit the reason', async () => {
    const unknown = await checkout('nobody@local@srv1')
    const forbidden = await checkout('root@local@srv2')
    expect(unknown.status).toBe(404)
    expect([forbidden.status, forbidden.text]).toEqual([unknown.status, unknown.text])
    const denied = (await h.events('checkout.denied')).slice(-2)
    expect(denied.map(({ reason }) => reason)).toEqual(['unknown account', 'no authorization'])
  })

  it('tells somebody who may view accounts the difference', async () => {
    expect((await checkout('root@local@srv2', admin)).status).toBe(403)
    expect((await checkout('nobody@local@srv2', admin)).status).toBe(404)
  })

  it('says so when there is no secret', async () => {
    const answer = await checkout('bare@local')
    expect([answer.status, answer.body.error]).toEqual([409, 'no_secret'])
  })

  it('accepts an empty body with the type of JSON, as many clients send', async () => {
    const headers = { 'content-type': 'application/json' }
    expect(
      (await h.call('POST', '/accounts/root@local@srv1/checkout', { cookie: ops, headers })).status,
    ).toBe(200)
  })

  it('refuses what it does not know, and wishes that are none', async () => {
    for (const [body, error, field] of [
      [{ bogus: 1 }, 'unknown_field', 'bogus'],
      [{ duration: 0 }, 'invalid_field', 'duration'],
      [{ duration: 3601 }, 'invalid_field', 'duration'],
      [{ comment: 'x'.repeat(257) }, 'invalid_field', 'comment'],
      [{ ticket: 7 }, 'invalid_field', 'ticket'],
    ] as const) {
      const answer = await wish('root@local@srv1', body)
      expect([answer.status, answer.body]).toMatchObject([400, { error, details: [{ field }] }])
    }
    expect((await wish('root@local@srv1', {})).status).toBe(200)
  })
})

describe('a private key', () => {
  const { file, line } = opensshKey('ed25519', undefined, 'stored')
  const publicOf = (text: string, passphrase?: string) => {
    const key = ssh2.utils.parseKey(text, passphrase)
    if (key instanceof Error) throw key
    return key.getPublicSSH().toString('base64')
  }

  it('comes as it is stored, or in the form that is asked for', async () => {
    const credentials = [{ type: 'ssh_key', private_key: file, passphrase: 'stored' }]
    await policyOf('keyed', { enable_lock: true }, credentials)
    for (const [body, expected] of [
      [{}, { private_key: file, passphrase: 'stored' }],
      [{ passphrase: 'new words' }, { private_key: expect.stringMatching(/BEGIN OPENSSH PRIVATE KEY/) }],
      [
        { key_format: 'pkcs8', passphrase: 'new words' },
        { private_key: expect.stringMatching(/BEGIN ENCRYPTED PRIVATE KEY/) },
      ],
      [
        { key_format: 'putty' },
        { private_key: expect.stringMatching(/^PuTTY-User-Key-File-3: ssh-ed25519/) },
      ],
    ] as const) {
      const { status, body: out, headers } = await wish('keyed@local@srv1', body)
      const { checkout_id, expires: _, ...secret } = out
      expect([status, secret]).toEqual([200, { login: 'keyed', ...expected }])
      expect(headers['cache-control']).toBe('no-store')
      if (out.private_key.includes('BEGIN OPENSSH')) {
        const words = out.passphrase ?? ('passphrase' in body ? body.passphrase : undefined)
        expect(publicOf(out.private_key, words)).toBe(line.split(' ')[1])
      }
      expect((await checkin('keyed@local@srv1', checkout_id)).status).toBe(204)
    }
    expect(JSON.stringify(await h.events()) + h.log.join('')).not.toContain('new words')
  })

  it('is not there, or has no such form', async () => {
    const none = await wish('root@local@srv1', { key_format: 'putty' })
    expect([none.status, none.body]).toMatchObject([
      409,
      { error: 'no_secret', details: [{ message: expect.stringContaining('no SSH key') }] },
    ])
    for (const body of [{ key_format: 'pem' }, { passphrase: '' }, { passphrase: 'a\nb' }]) {
      const refused = await wish('keyed@local@srv1', body)
      expect([refused.status, refused.body.error]).toEqual([400, 'invalid_field'])
    }
    expect((await checkout('keyed@local@srv1')).status).toBe(200)
  })
})

describe('a policy', () => {
  it('bounds what its checkouts wish, and their extensions', async () => {
    await policyOf('timed', { duration: 60, extension: 50, max_duration: 120 })
    const plain = await checkout('timed@local@srv1')
    expect(Date.parse(plain.body.expires)).toBe(h.clock.now + 60_000)
    const told = { duration: 100, comment: 'disk is full', ticket: 'INC-7' }
    const { body } = await wish('timed@local@srv1', told)
    expect(Date.parse(body.expires)).toBe(h.clock.now + 100_000)
    expect((await h.events('checkout.out')).at(-1)).toMatchObject({
      reason: 'disk is full',
      ticket: 'INC-7',
      duration: 100_000,
    })
    expect((await wish('timed@local@srv1', { duration: 121 })).body).toMatchObject({
      error: 'invalid_field',
      details: [{ field: 'duration', message: expect.stringContaining('120 seconds') }],
    })
    const longer = await extend('timed@local@srv1', body.checkout_id)
    expect(Date.parse(longer.body.expires)).toBe(h.clock.now + 120_000)
    expect((await h.events('checkout.extended')).at(-1)).toMatchObject({
      object: body.checkout_id,
      duration: 20_000,
    })
    const more = await extend('timed@local@srv1', body.checkout_id)
    expect([more.status, more.body.error]).toEqual([409, 'not_extendable'])
    const others = await extend('timed@local@srv1', body.checkout_id, await h.signIn('ops2'))
    expect(others.status).toBe(404)
  })

  it('gives no extension unless it names one, and one of several at the same moment', async () => {
    const none = (await checkout('root@local@srv1')).body.checkout_id
    expect((await extend('root@local@srv1', none)).body).toMatchObject({ error: 'not_extendable' })
    await policyOf('stretch', { duration: 60, extension: 10 })
    const { checkout_id: id, expires } = (await checkout('stretch@local@srv1')).body
    const answers = await Promise.all([1, 2, 3].map(() => extend('stretch@local@srv1', id)))
    const done = answers.filter(({ status }) => status === 200)
    expect(done.length).toBeGreaterThan(0)
    const { items } = await h.store.checkouts.list({ now: h.clock.now, id })
    expect(items[0]?.expires).toBe(Date.parse(expires) + done.length * 10_000)
    for (const { status, body } of answers) if (status !== 200) expect(body.error).toBe('changed_meanwhile')
    const events = (await h.events('checkout.extended')).filter(({ object }) => object === id)
    expect(events).toHaveLength(done.length)
  })

  it('extends for nobody who may not check out any more', async () => {
    await policyOf('lapsing', { duration: 60, extension: 10 })
    const { checkout_id: id } = (await checkout('lapsing@local@srv1')).body
    const groups = await h.call('PUT', '/targetgroups/lapsing', {
      cookie: admin,
      body: { password_retrieval: { accounts: [] } },
    })
    expect(groups.status).toBe(200)
    expect((await extend('lapsing@local@srv1', id)).status).toBe(404)
    expect((await checkin('lapsing@local@srv1', id)).status).toBe(204)
  })

  it('has no duration beyond its maximum', async () => {
    const body = { policy_name: 'crooked', duration: 7200 }
    const answer = await h.call('POST', '/checkoutpolicies', { cookie: admin, body })
    expect(answer.body).toMatchObject({ error: 'invalid_field', details: [{ field: 'duration' }] })
  })

  it('that locks says until when, and to those without a right nothing', async () => {
    await policyOf('locked', { enable_lock: true, duration: 60 })
    const cookies = [ops, await h.signIn('ops2')]
    const answers = await Promise.all([0, 1, 0, 1].map((who) => checkout('locked@local@srv1', cookies[who])))
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409])
    const until = new Date(h.clock.now + 60_000).toISOString()
    for (const { status, body, text } of answers) {
      if (status === 200) continue
      expect(body).toMatchObject({ error: 'checked_out', details: [{ until }] })
      expect(text).not.toMatch(/ops[12]/)
    }
    await h.addUser('stranger', 'user')
    const stranger = await checkout('locked@local@srv1', await h.signIn('stranger'))
    expect([stranger.status, stranger.text]).toEqual([404, expect.not.stringContaining(until)])
  })
})

describe('who has what', () => {
  const list = (query: string, cookie = ops) => h.call('GET', `/checkouts${query}`, { cookie })

  it('one sees of oneself, and of all with the right; running sessions too', async () => {
    const cookie = await h.signIn('ops2')
    await policyOf('seen', { duration: 60 })
    const { checkout_id: id } = (await wish('seen@local@srv1', { comment: 'for a test' }, cookie)).body
    const begin = h.clock.now
    for (const [user, session] of [
      ['ops1', '01K9T5RZ8Q4W6X2C3V1B0N7M51'],
      ['ops2', '01K9T5RZ8Q4W6X2C3V1B0N7M52'],
    ] as const) {
      await h.store.sessions.create({ ...SESSION, id: session, user, begin })
    }
    const mine = await list('?status=current&q=account=seen', cookie)
    expect(mine.body).toMatchObject([
      { id, kind: 'checkout', user: 'ops2', device: 'srv1', comment: 'for a test', end: null, result: null },
    ])
    const sessions = (await list('?q=kind=session', cookie)).body
    expect(sessions).toMatchObject([
      { user: 'ops2', account: 'root', expires: null, url: expect.stringContaining('/sessions/') },
    ])
    for (const other of [id, '01K9T5RZ8Q4W6X2C3V1B0N7M52']) {
      expect((await h.call('GET', `/checkouts/${other}`, { cookie: ops })).status).toBe(404)
    }
    expect((await list('?q=account=seen')).body).toEqual([])
    const all = await list('?q=kind=session&sort=user&limit=1', admin)
    expect([all.headers['x-total-count'], all.body[0].user]).toEqual(['2', 'ops1'])
    expect((await h.call('GET', `/checkouts/${id}`, { cookie: admin })).body.user).toBe('ops2')
    for (const session of ['01K9T5RZ8Q4W6X2C3V1B0N7M51', '01K9T5RZ8Q4W6X2C3V1B0N7M52']) {
      await h.store.sessions.update(session, { end: begin + 1, result: 'success' })
    }
    expect((await list('?q=kind=session', admin)).body).toEqual([])
    expect((await checkin('seen@local@srv1', id, cookie)).status).toBe(204)
    expect((await list(`?status=closed&q=account=seen`, cookie)).body).toMatchObject([
      { id, result: 'returned', end: expect.any(String) },
    ])
    expect((await list('?status=current&q=account=seen', cookie)).body).toEqual([])
  })

  it('an expired one is over before its end is written', async () => {
    await policyOf('short', { duration: 5 })
    const { checkout_id: id } = (await checkout('short@local@srv1')).body
    h.clock.now += 5000
    expect((await list('?status=current&q=account=short')).body).toEqual([])
    expect((await list('?status=closed&q=account=short')).body).toMatchObject([{ id, result: 'expired' }])
  })

  it('is taken back with a right and a comment, and the account is free', async () => {
    await policyOf('taken', { enable_lock: true })
    const { checkout_id: id } = (await checkout('taken@local@srv1')).body
    const force = (cookie: string, body: unknown = { comment: 'left the company' }) =>
      h.call('POST', `/checkouts/${id}/checkin`, { cookie, body })
    const cookie = await h.signIn('ops2')
    expect((await force(cookie)).status).toBe(403)
    expect((await force(ops)).status).toBe(403)
    for (const body of [{}, { comment: '' }, { comment: ' ' }]) {
      expect((await force(admin, body)).body).toMatchObject({
        error: 'invalid_field',
        details: [{ field: 'comment' }],
      })
    }
    expect((await force(admin)).status).toBe(204)
    expect((await h.events('checkout.forced')).at(-1)).toMatchObject({
      user: 'admin',
      profile: 'product_administrator',
      holder: 'ops1',
      account: 'taken',
      object: id,
      reason: 'left the company',
    })
    expect((await force(admin)).status).toBe(404)
    expect((await checkin('taken@local@srv1', id)).status).toBe(404)
    expect((await h.call('GET', `/checkouts/${id}`, { cookie: ops })).body).toMatchObject({
      result: 'forced',
      forced_by: 'admin',
      forced_comment: 'left the company',
    })
    expect((await checkout('taken@local@srv1', cookie)).status).toBe(200)
  })
})

describe('a checkout that is out', () => {
  it('holds its account; that of a user who is removed ends, and the audit says so', async () => {
    const made = {
      account_name: 'held',
      device: 'srv1',
      credentials: [{ type: 'password', password: 'canary-held' }],
    }
    await must('/accounts', made)
    const group = { group_name: 'held', password_retrieval: { accounts: ['held@local@srv1'] } }
    await must('/targetgroups', group)
    await must('/usergroups', { group_name: 'holders' })
    await must('/authorizations', {
      user_group: 'holders',
      target_group: 'held',
      authorize_password_retrieval: true,
    })
    await h.addUser('holder', 'user')
    const as = (method: string, path: string, body?: unknown) => h.call(method, path, { cookie: admin, body })
    expect((await as('PUT', '/users/holder', { groups: ['holders'] })).status).toBe(200)
    const out = await checkout('held@local@srv1', await h.signIn('holder'))
    expect(out.status).toBe(200)
    expect((await as('DELETE', '/authorizations/holders:held')).status).toBe(204)
    expect((await as('DELETE', '/targetgroups/held')).status).toBe(204)
    const held = await as('DELETE', '/accounts/held@local@srv1')
    expect([held.status, held.body.error]).toEqual([409, 'in_use'])
    expect(held.body.details[0].message).toMatch(/^checked out by "holder" until 20/)
    expect((await as('DELETE', '/users/holder')).status).toBe(204)
    expect((await h.events('checkout.expired')).at(-1)).toMatchObject({
      user: 'holder',
      account: 'held',
      device: 'srv1',
      object: out.body.checkout_id,
      reason: 'the user was removed',
    })
    expect((await as('DELETE', '/accounts/held@local@srv1')).status).toBe(204)
  })

  it('ends when its time is over, once, and the audit says so', async () => {
    const { body } = await checkout('root@local@srv1')
    const expired = async () =>
      (await h.events('checkout.expired')).filter(({ object }) => object === body.checkout_id)
    const expiry = new CheckoutExpiry({ store: h.store, audit: { record: h.record }, now: () => h.clock.now })
    const end = () => expiry.run()
    await end()
    expect(await expired()).toEqual([])
    const { now } = h.clock
    h.clock.now = Date.parse(body.expires)
    await end()
    await end()
    expect(await expired()).toMatchObject([{ user: 'ops1', account: 'root', device: 'srv1' }])
    h.clock.now = now
  })
})

describe('nothing keeps, or fetches beforehand, what a checkout answers', () => {
  it('no answer may be stored, whatever it is', async () => {
    const out = await checkout('root@local@srv1')
    const answers = [
      out,
      await checkout('nobody@local'),
      await checkout('bare@local'),
      await checkout('root@local@srv1', ''),
      await checkin('root@local@srv1', out.body.checkout_id),
      await checkin('root@local@srv1', 'nonsense'),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 404, 409, 401, 204, 404])
    for (const { headers } of answers) {
      expect(headers['cache-control']).toBe('no-store')
      expect(headers['etag']).toBeUndefined()
    }
  })

  it.each(['GET', 'HEAD', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])('%s hands nothing out', async (method) => {
    const before = (await h.events()).length
    for (const path of ['/accounts/root@local@srv1/checkout', '/accounts/root@local@srv1/checkin']) {
      for (const cookie of [ops, admin]) {
        const answer = await h.call(method, path, { cookie, headers: { 'sec-purpose': 'prefetch' } })
        expect([404, 405]).toContain(answer.status)
        expect(answer.text).not.toContain('canary')
        expect(answer.headers['cache-control']).toBe('no-store')
      }
    }
    expect(await h.events()).toHaveLength(before)
  })
})

describe('check-in', () => {
  it('takes back what the caller has out, once', async () => {
    const { checkout_id: id } = (await checkout('root@local@srv1')).body
    expect((await checkin('root@local@srv1', id)).status).toBe(204)
    expect((await checkin('root@local@srv1', id)).status).toBe(404)
    expect((await h.events('checkout.in')).at(-1)).toMatchObject({ user: 'ops1', object: id })
  })

  it('is 404 for what is of somebody else, of another account, expired, or unknown', async () => {
    const { checkout_id: id } = (await checkout('root@local@srv1')).body
    expect((await checkin('root@local@srv1', id, await h.signIn('ops2'))).status).toBe(404)
    expect((await checkin('bare@local@srv1', id)).status).toBe(404)
    expect((await checkin('root@local@srv1', '01K9T5RZ8Q4W6X2C3V1B0N7M5J')).status).toBe(404)
    expect((await checkin('root@local@srv1', 'nonsense')).status).toBe(404)
    h.clock.now += 3_600_000
    ops = await h.signIn('ops1')
    expect((await checkin('root@local@srv1', id)).status).toBe(404)
  })
})

describe('secrets', () => {
  it('are in no answer but that of the checkout, in no event and no log line', async () => {
    const cookie = await h.signIn()
    const body = { credentials: [{ type: 'password', password: 'canary-8b21' }], description: 'changed' }
    const changed = await h.call('PUT', '/accounts/root@local@srv1', { cookie, body })
    expect(changed.body.credentials).toEqual([{ type: 'password' }])
    const texts = [changed.text, (await h.call('GET', '/accounts', { cookie })).text, h.log.join('')]
    for (const text of [...texts, JSON.stringify(await h.events())]) expect(text).not.toContain('canary')
    expect((await h.events('object.update')).at(-1)?.['changes']).toBe(
      '{"credentials":["[secret]","[secret]"],"description":["","changed"]}',
    )
    expect((await h.events('secret.change')).at(-1)).toMatchObject({
      object: 'root@local@srv1',
      user: 'admin',
    })
    expect((await checkout('root@local@srv1', await h.signIn('ops1'))).body.password).toBe('canary-8b21')
  })

  it('that are no keys are refused by field', async () => {
    const cookie = await h.signIn()
    const body = { credentials: [{ type: 'ssh_key', private_key: 'no key' }] }
    const answer = await h.call('PUT', '/accounts/bare@local', { cookie, body })
    expect(answer.body).toMatchObject({
      error: 'invalid_field',
      details: [{ field: 'credentials/0/private_key' }],
    })
    expect(answer.text).not.toContain('no key')
  })
})

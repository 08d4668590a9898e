import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { endExpiredCheckouts } from '../../src/broker/checkout-expiry.ts'
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

  it('takes no wishes: the policy decides', async () => {
    const wish = (body: unknown) =>
      h.call('POST', '/accounts/root@local@srv1/checkout', { cookie: ops, body })
    for (const [body, error] of [
      [{ duration: 60 }, 'not_available_yet'],
      [{ bogus: 1 }, 'unknown_field'],
    ] as const) {
      const answer = await wish(body)
      expect([answer.status, answer.body.error]).toEqual([400, error])
    }
    expect((await wish({})).status).toBe(200)
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
    const end = () => endExpiredCheckouts(h.store, { record: h.record }, h.clock.now)
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

/** Checkouts whose moment passes between the decision and the answer. */
import { request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { EventCode } from '../../src/audit/events/catalogue.ts'
import { opensshKey } from '../identity/keys.ts'
import { until } from '../until.ts'
import { type Answer, type Harness, startHarness } from './harness.ts'

const ACCOUNT = 'root@local@srv1'
let h: Harness
let admin: string
let ops: string
let other: string
beforeAll(async () => {
  h = await startHarness()
  admin = await h.signIn()
  for (const name of ['ops1', 'ops2']) await h.addUser(name, 'user')
  ops = await h.signIn('ops1')
  other = await h.signIn('ops2')
  await must('/devices', { device_name: 'srv1', host: '192.0.2.1' })
  const terms = { enable_lock: true, duration: 60, extension: 60 }
  await must('/checkoutpolicies', { policy_name: 'locking', ...terms })
  await must('/checkoutpolicies', { policy_name: 'open', duration: 60 })
  const credentials = [
    { type: 'password', password: 'canary-moment' },
    { type: 'ssh_key', private_key: opensshKey('ed25519').file },
  ]
  const accounts = { root: 'locking', shared: 'open' }
  for (const [account_name, checkout_policy] of Object.entries(accounts))
    await must('/accounts', { account_name, device: 'srv1', checkout_policy, credentials })
  await must('/usergroups', { group_name: 'ops', users: ['ops1', 'ops2'] })
  const retrieval = { accounts: [ACCOUNT, 'shared@local@srv1'] }
  await must('/targetgroups', { group_name: 'targets', password_retrieval: retrieval })
  const pair = { user_group: 'ops', target_group: 'targets' }
  await must('/authorizations', { ...pair, authorize_password_retrieval: true })
})
afterEach(async () => {
  h.audit.before = () => {}
  h.audit.broken = false
  for (const { id } of await current()) await force(id)
})
afterAll(() => h.close())

async function must(path: string, body: unknown): Promise<void> {
  const answer = await h.call('POST', path, { cookie: admin, body })
  expect(answer.status, answer.text).toBe(201)
}
const post = (path: string, body: unknown, cookie: string): Promise<Answer> =>
  h.call('POST', path, { cookie, body })
const checkout = (body: unknown = {}, cookie = ops, account = ACCOUNT) =>
  post(`/accounts/${account}/checkout`, body, cookie)
const act = (action: 'extend' | 'checkin', id: string) =>
  post(`/accounts/${ACCOUNT}/${action}`, { checkout_id: id }, ops)
const force = (id: string) => post(`/checkouts/${id}/checkin`, { comment: 'for a test' }, admin)
const current = async (): Promise<{ id: string; user: string }[]> =>
  (await h.call('GET', '/checkouts?status=current', { cookie: admin })).body

/** Does something once, when an event of that code is about to be written. */
function before(code: EventCode, work: () => Promise<unknown>): void {
  h.audit.before = async (written) => {
    if (written !== code) return
    h.audit.before = () => {}
    await work()
  }
}
const about = async (code: string, id: string) => (await h.events(code)).filter(({ object }) => object === id)

describe('an extension', () => {
  it('does not revive a checkout that expired while its event was written', async () => {
    const { checkout_id: id, expires } = (await checkout()).body
    let taken: Answer | undefined
    before('checkout.extended', async () => {
      h.clock.now = Date.parse(expires)
      taken = await checkout({}, other)
    })
    const extended = await act('extend', id)
    expect([extended.status, taken?.status]).toEqual([404, 200])
    expect(await current()).toMatchObject([{ user: 'ops2' }])
    expect((await h.events('checkout.denied')).at(-1)).toMatchObject({
      account: 'root',
      reason: 'the extension could not be stored',
    })
  })
})

describe('the audit', () => {
  it('has one event for changes that only one of several makes', async () => {
    const { checkout_id: id } = (await checkout()).body
    const answers = await Promise.all([act('checkin', id), act('checkin', id), force(id), force(id)])
    expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 404, 404, 404])
    const events = [...(await about('checkout.in', id)), ...(await about('checkout.forced', id))]
    expect(events).toHaveLength(1)
  })

  it('that cannot be written leaves nothing out, and is the answer, even if the checkout was taken back', async () => {
    before('checkout.out', async () => {
      h.audit.broken = true
    })
    const refused = await checkout()
    expect([refused.status, refused.body.error]).toEqual([503, 'audit_unavailable'])
    h.audit.broken = false
    expect(await current()).toEqual([])
    before('checkout.out', async () => {
      for (const { id } of await current()) expect((await force(id)).status).toBe(204)
      h.audit.broken = true
    })
    const hidden = await checkout()
    expect([hidden.status, hidden.body.error]).toEqual([503, 'audit_unavailable'])
  })
})

describe('a secret', () => {
  it('does not leave for a checkout that was taken back, or has expired', async () => {
    for (const end of [
      async () => {
        for (const { id } of await current()) expect((await force(id)).status).toBe(204)
      },
      async () => {
        h.clock.now += 60_000
      },
    ]) {
      before('checkout.out', end)
      const refused = await checkout()
      expect([refused.status, refused.body.error]).toEqual([409, 'changed_meanwhile'])
      expect(refused.text).not.toContain('canary')
      expect((await h.events('checkout.denied')).at(-1)?.['reason']).toMatch(/^the checkout was over/)
      expect(await current()).toEqual([])
    }
  })

  it('does not stay out for a client that has gone', async () => {
    await h.api.listen({ port: 0, host: '127.0.0.1' })
    const { port } = h.api.server.address() as AddressInfo
    const opened = new Promise<import('node:net').Socket>((resolve) =>
      h.api.server.once('secureConnection', resolve),
    )
    const path = `/api/v3.12/accounts/${ACCOUNT}/checkout`
    const headers = { cookie: ops }
    const client = request({
      host: '127.0.0.1',
      port,
      ca: h.cert,
      method: 'POST',
      path,
      headers,
      agent: false,
    })
    client.on('error', () => {})
    before('checkout.out', async () => {
      client.destroy()
      const socket = await opened
      await until('the end of the connection', () => socket.destroyed || undefined)
    })
    client.end()
    const returned = await until('the event', async () =>
      (await h.events('checkout.in')).find(({ reason }) => /client went away/.test(String(reason))),
    )
    expect(returned).toMatchObject({ user: 'ops1', account: 'root', device: 'srv1' })
    await until('the end of the checkout', async () => (await current()).length === 0 || undefined)
  })
})

describe('a key', () => {
  it('that waits to be rewritten keeps others neither from the account nor from the thread', async () => {
    const wish = { passphrase: 'new words' }
    const answers = await Promise.all([1, 2, 3, 4].map(() => checkout(wish, ops, 'shared@local@srv1')))
    const busy = answers.filter(({ status }) => status === 503)
    expect(busy.length).toBeGreaterThan(0)
    for (const { body } of busy) expect(body.error).toBe('busy')
    expect(await current()).toHaveLength(answers.length - busy.length)
    expect((await h.events('checkout.denied')).at(-1)?.['reason']).toBe(
      'too many keys of this user wait to be rewritten',
    )
  })

  it('is not rewritten for an account that another has', async () => {
    expect((await checkout({}, other)).status).toBe(200)
    const waiting = [1, 2].map(() => checkout({ passphrase: 'new words' }, ops, 'shared@local@srv1'))
    const locked = await checkout({ passphrase: 'new words' })
    expect([locked.status, locked.body.error]).toEqual([409, 'checked_out'])
    for (const { status } of await Promise.all(waiting)) expect(status).toBe(200)
  })
})

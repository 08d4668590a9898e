/** Unknown query parameters: none is ignored, because it might be meant to limit the request. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../src/api/access/routes.ts'
import { bodyExample } from '../../src/api/reference/examples.ts'
import { type Answer, type CallOptions, type Harness, startHarness } from './harness.ts'

let h: Harness
let cookie: string
beforeAll(async () => {
  h = await startHarness()
  cookie = await h.signIn()
  await h.call('POST', '/devices', { cookie, body: { device_name: 'srv1', host: '192.0.2.1' } })
})
afterAll(() => h.close())

function expectRefused(answer: Answer, field: string): void {
  expect(answer.status).toBe(400)
  expect(answer.body).toMatchObject({
    error: 'unknown_field',
    details: [{ field, message: 'there is no such parameter here' }],
  })
}

/** Valid bodies for routes without an example: Fastify checks the body before the parameters. */
const BODIES: Readonly<Record<string, object>> = {
  'PUT /hostkeys/:ref': { state: 'accepted' },
  'POST /accounts/:ref/change': { wait: 0 },
  'POST /domains/:ref/change': { force: false },
  'POST /accounts/:ref/checkin': { checkout_id: 'x' },
  'POST /accounts/:ref/extend': { checkout_id: 'x' },
  'POST /checkouts/:ref/checkin': { comment: 'enough' },
  'POST /sessions/:ref/kill': { reason: 'enough' },
  'POST /sessions/:ref/suspend': { reason: 'wait' },
  'POST /approvals': { target: 'root@srv1' },
  'POST /approvals/:ref/accept': { comment: 'go on' },
  'POST /approvals/:ref/reject': { comment: 'no' },
  'POST /approvals/:ref/cancel': { comment: 'no' },
  'POST /sessions/:ref/invitations': { mode: 'view', duration: 300 },
  'PUT /sessions/:ref/invitations/:invitation': { mode: 'view' },
  'POST /externalauths/:ref/test': { user_name: 'fritz' },
  'POST /authdomains/:ref/test': { user_name: 'fritz' },
  'POST /users/:ref/totp': { password: 'x' },
  'POST /users/:ref/totp/confirm': { code: '123456' },
  'POST /users/:ref/totp/recoverycodes': { code: '123456' },
  'POST /targets/:ref/ticket': { protocol: 'VNC' },
  'POST /signins/end': { with_sessions: false },
  'POST /session/certificate': {
    public_key: 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ',
  },
  'POST /sessions/:ref/hold': { reason: 'a case' },
  'POST /sessions/:ref/release': { reason: 'the case is closed' },
}

function requestOf(route: string): [method: string, path: string, options: CallOptions] {
  const [method = '', path = ''] = route.split(' ')
  const url = path.replaceAll(/:\w+/g, 'admin')
  if (path.startsWith('/import/'))
    return [method, url, { raw: '#x', headers: { 'content-type': 'text/csv' } }]
  const body = BODIES[route] ?? bodyExample(route)?.body ?? (method === 'PUT' ? {} : undefined)
  return [method, url, body ? { body } : {}]
}

// Providers of identities add parameters of their own.
const routes = Object.keys(ROUTES).filter((route) => ROUTES[route] !== 'scim')
it.each(routes)('%s refuses one that it does not know', async (route) => {
  const [method, url, options] = requestOf(route)
  expectRefused(
    await h.call(method, `${url}?no_such_parameter=1`, { cookie, ...options }),
    'no_such_parameter',
  )
})

describe('what a request would do', () => {
  it('is not done: dry_run is a parameter of imports only', async () => {
    expectRefused(await h.call('DELETE', '/devices/srv1?dry_run=true', { cookie }), 'dry_run')
    const body = { device_name: 'srv2', host: '192.0.2.2' }
    expectRefused(await h.call('POST', '/devices?dry_run=true', { cookie, body }), 'dry_run')
    const change = { description: 'x' }
    expectRefused(await h.call('PUT', '/devices/srv1?dry_run=true', { cookie, body: change }), 'dry_run')
    const { body: devices } = await h.call('GET', '/devices', { cookie })
    expect(devices).toMatchObject([{ device_name: 'srv1', description: '' }])
    const events = await h.events()
    expect(events.filter(({ event }) => event.startsWith('object.'))).toMatchObject([{ object: 'srv1' }])
  })

  it('nor shown: an item has no selection of fields', async () => {
    expectRefused(await h.call('GET', '/users/admin?fields=id', { cookie }), 'fields')
    expectRefused(await h.call('GET', '/users/admin?__proto__=1', { cookie }), '__proto__')
    expect((await h.call('GET', '/users/admin?', { cookie })).status).toBe(200)
  })

  it('by nobody without the right: the guard comes first', async () => {
    expect((await h.call('GET', '/users/admin?x=1')).status).toBe(401)
    const wrong = { user: 'admin', password: 'wrong' }
    expectRefused(await h.call('POST', '/session?user=admin', { body: wrong }), 'user')
    expect(await h.events('auth.failure')).toEqual([])
  })
})

/** `POST /targets/TARGET/ticket`. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TICKET_LIFETIME_MS } from '../../src/gate/ticket-office.ts'
import { MAX_TICKETS_PER_USER } from '../../src/gate/tickets.ts'
import { type Harness, startHarness } from './harness.ts'

let h: Harness
let admin: string
let cookie: string
const must = async (path: string, body: unknown) => {
  const answer = await h.call('POST', path, { cookie: admin, body })
  expect(answer.status, answer.text).toBe(201)
}
beforeAll(async () => {
  h = await startHarness()
  admin = await h.signIn()
  await h.addUser('ops1', 'user')
  await must('/devices', { device_name: 'desk1', host: '192.0.2.9' })
  for (const [service_name, protocol] of [
    ['vnc', 'VNC'],
    ['vnc2', 'VNC'],
    ['rdp', 'RDP'],
    ['ssh', 'SSH'],
  ]) {
    await must('/devices/desk1/services', { service_name, protocol })
  }
  await must('/accounts', { account_name: 'console', device: 'desk1' })
  const accounts = ['vnc', 'vnc2', 'rdp', 'ssh'].map((service) => `console@local:desk1:${service}`)
  await must('/targetgroups', { group_name: 'desks', session: { accounts } })
  await must('/usergroups', { group_name: 'ops', users: ['ops1'] })
  const subprotocols = ['VNC', 'RDP', 'RDP_CLIPBOARD_DOWN', 'RDP_DRIVE', 'SSH_SHELL']
  await must('/authorizations', {
    user_group: 'ops',
    target_group: 'desks',
    authorize_sessions: true,
    subprotocols,
  })
  cookie = await h.signIn('ops1', 'ops1 password')
})
afterAll(() => h.close())

const ask = (target: string, body: Record<string, unknown> = { protocol: 'VNC' }, as = cookie) =>
  h.call('POST', `/targets/${encodeURIComponent(target)}/ticket`, { cookie: as, body })

describe('a ticket', () => {
  it('is a name and a password, shown in this answer only, with an event that has neither', async () => {
    const { status, body, headers } = await ask('console@local:desk1:vnc')
    expect(status).toBe(201)
    expect(headers['cache-control']).toContain('no-store')
    expect(body).toEqual({
      user: 'ops1:console@local@desk1:vnc',
      password: expect.stringMatching(/^\w{8}$/),
      expires: new Date(h.clock.now + TICKET_LIFETIME_MS).toISOString(),
    })
    const [event] = await h.events('ticket.issue')
    expect(event).toMatchObject({
      user: 'ops1',
      protocol: 'VNC',
      account: 'console',
      device: 'desk1',
      service: 'vnc',
      object_type: 'address',
      object: '127.0.0.1',
      duration: TICKET_LIFETIME_MS,
    })
    expect(JSON.stringify(event)).not.toContain(body.password)
  })

  it('for RDP is a longer password, and a file for the client that has it not', async () => {
    const { status, body } = await ask('console@desk1', { protocol: 'RDP' })
    expect(status).toBe(201)
    expect(body).toEqual({
      user: 'ops1:console@local@desk1:rdp',
      password: expect.stringMatching(/^\w{24}$/),
      expires: new Date(h.clock.now + TICKET_LIFETIME_MS).toISOString(),
      rdp_file: expect.any(String),
    })
    const lines = body.rdp_file.split('\r\n')
    expect(lines.pop()).toBe('')
    expect(lines).toEqual(
      expect.arrayContaining([
        'full address:s:bastion.example.com:3390',
        'username:s:ops1:console@local@desk1:rdp',
        'redirectclipboard:i:1',
        'drivestoredirect:s:*',
        'redirectprinters:i:0',
        'audiomode:i:2',
      ]),
    )
    expect(body.rdp_file).not.toContain(body.password)
  })

  it('is for another address where that is named', async () => {
    const named = { protocol: 'VNC', client_ip: '2001:DB8::7' }
    expect((await ask('console@desk1:vnc', named)).status).toBe(201)
    expect((await h.events('ticket.issue')).at(-1)).toMatchObject({ object: '2001:db8::7' })
    for (const client_ip of ['desk1.example.com', '192.0.2.0/24', '', '192.0.2.7 ']) {
      const { status, body } = await ask('console@desk1:vnc', { protocol: 'VNC', client_ip })
      expect([status, body.error]).toEqual([400, 'invalid_field'])
    }
  })

  it('leads where its user may go: all else is not there', async () => {
    for (const target of ['console@local:desk1:ssh', 'root@desk1:vnc', 'console@nowhere', '@@']) {
      const { status, body } = await ask(target)
      expect([status, body.error], target).toEqual([404, 'not_found'])
    }
    expect((await h.events('ticket.denied')).map(({ object }) => object)).toContain('root@desk1:vnc')
    expect((await ask('console@local:desk1:vnc', { protocol: 'VNC' }, admin)).status).toBe(404)
  })

  it('names what may be meant', async () => {
    const { status, body } = await ask('console@desk1')
    expect([status, body.error]).toEqual([409, 'ambiguous_reference'])
    expect(body.details.map(({ message }: { message: string }) => message)).toEqual([
      'console@local:desk1:vnc',
      'console@local:desk1:vnc2',
    ])
  })

  it.each([
    [{ protocol: 'SSH' }, 'invalid_field'],
    [{}, 'invalid_field'],
    [{ protocol: 'VNC', duration: 60 }, 'unknown_field'],
  ])('for %j there is none: %s', async (body, error) => {
    const answer = await ask('console@local:desk1:vnc', body)
    expect([answer.status, answer.body.error]).toEqual([400, error])
  })

  it('is none without a user', async () => {
    const key = await h.call('POST', '/apikeys', {
      cookie: admin,
      body: { key_name: 'machine', profile: 'user' },
    })
    const headers = { 'x-auth-key': key.body.api_key }
    const options = { headers, body: { protocol: 'VNC' } }
    const path = `/targets/${encodeURIComponent('console@local:desk1:vnc')}/ticket`
    expect((await h.call('POST', path, options)).body.error).toBe('user_context_required')
    const as = { ...options, headers: { ...headers, 'x-auth-user': 'ops1' } }
    expect((await h.call('POST', path, as)).status).toBe(201)
    expect((await h.events('ticket.issue')).at(-1)).toMatchObject({
      user: 'ops1',
      method: 'api_key',
      api_key: 'machine',
    })
    const reader = { profile_name: 'reader', rights: { targets: 'view' } }
    expect((await h.call('POST', '/profiles', { cookie: admin, body: reader })).status).toBe(201)
    const body = { key_name: 'reading', profile: 'reader' }
    const reading = await h.call('POST', '/apikeys', { cookie: admin, body })
    const read = { ...as, headers: { 'x-auth-key': reading.body.api_key, 'x-auth-user': 'ops1' } }
    expect((await h.call('POST', path, read)).status).toBe(403)
  })

  it('is not handed out when it cannot be audited, and does not count then', async () => {
    h.audit.broken = true
    for (let n = 0; n <= MAX_TICKETS_PER_USER; n++) {
      expect((await ask('console@local:desk1:vnc')).body.error).toBe('audit_unavailable')
    }
    h.audit.broken = false
    expect((await ask('console@local:desk1:vnc')).status).toBe(201)
  })

  it('waits beside ten others at most', async () => {
    h.clock.now += TICKET_LIFETIME_MS
    const answers: string[] = []
    for (let n = 0; n <= MAX_TICKETS_PER_USER; n++) {
      const { status, body } = await ask('console@local:desk1:vnc')
      answers.push(status === 201 ? 'made' : body.error)
    }
    expect(answers.slice(-2)).toEqual(['made', 'too_many_tickets'])
  })
})

/** `/sessions/ID/invitations`: permissions, answers, and events. */
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { GateNotice } from '../../src/contract/gate.ts'
import { Invitations, type InviteAnswer } from '../../src/gate/invitations.ts'
import type { RunningSession } from '../../src/gate/running.ts'
import { Secret } from '../../src/model/secret.ts'
import { open, seal } from '../../src/vault/seal.ts'
import { groundsOn } from '../gate/grounds.ts'
import { type Harness, startHarness } from './harness.ts'

const SESSION = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const PATH = `/sessions/${SESSION}/invitations`
const RUNNING = {
  id: SESSION,
  target: {
    protocol: 'VNC',
    accountName: 'a',
    domainName: 'local',
    deviceName: 'desk1',
    serviceName: 'vnc',
    host: 'h',
  },
} as unknown as RunningSession

let h: Harness
let owner: string | undefined
let refusal: Exclude<InviteAnswer['result'], 'invited'> | undefined
let notices: GateNotice[]
let invitations: Invitations
let own: string
let other: string
let auditor: string
let admin: string

beforeAll(async () => {
  h = await startHarness({
    sessionControl: {
      kill: async () => false,
      suspend: async () => false,
      release: async () => 'not_running',
      holdOf: () => undefined,
      review: async () => {},
      watchRefusal: () => 'not_running',
      watch: () => ({ result: 'not_running' }),
      ownerOf: () => owner,
      invite: async (_, request) =>
        refusal ? { result: refusal } : await invitations.invite(RUNNING, request),
      invitations: (id) => invitations.ofSession(id),
      setGuestMode: (id, mode, by, basis) => invitations.setMode(id, mode, by, basis),
      withdrawInvitation: (id, reason, by) => invitations.withdraw(id, reason, by),
    },
  })
  const key = { id: randomBytes(8), key: Secret.of(randomBytes(32)) }
  const audit = { record: async () => {} }
  invitations = new Invitations({
    stored: h.store.invitations,
    vault: {
      seal: (place, secret) => seal(key, place, secret),
      open: (place, sealed) => open(key, place, sealed),
    },
    runsElsewhere: () => false,
    audit,
    notify: (notice) => notices.push(notice),
    grounds: () => groundsOn(h.store, () => h.clock.now)(),
    watch: () => {},
    now: () => h.clock.now,
  })
  await h.addUser('ops1', 'user')
  await h.addUser('ops2', 'user')
  await h.addUser('watcher', 'auditor')
  own = await h.signIn('ops1')
  other = await h.signIn('ops2')
  auditor = await h.signIn('watcher')
  admin = await h.signIn()
  owner = (await h.store.users.find('ops1'))?.id
  await h.store.sessions.create({
    id: SESSION,
    begin: h.clock.now,
    user: 'ops1',
    sourceIp: '198.51.100.7',
    protocol: 'VNC',
    subprotocols: [],
    account: 'a',
    domain: 'local',
    device: 'desk1',
    service: 'vnc',
    targetHost: 'h',
    authorization: 'ops:desks',
    isRecorded: true,
    bytesIn: 0,
    bytesOut: 0,
  })
})
afterAll(() => h.close())
beforeEach(() => {
  refusal = undefined
  notices = []
  for (const { id } of invitations.ofSession(SESSION)) invitations.withdraw(id, 'the test is over')
})

const WANTED = { mode: 'view', duration: 900, name: 'Bob of ACME' }
const invite = (cookie = own, body: object = WANTED) => h.call('POST', PATH, { cookie, body })

describe('an invitation', () => {
  it('is a password, shown in this answer only, with an event that has none', async () => {
    const { status, body, headers } = await invite()
    expect(status).toBe(201)
    expect(headers['cache-control']).toContain('no-store')
    const expires = new Date(h.clock.now + 900_000).toISOString()
    expect(body).toMatchObject({
      invitation: { name: 'Bob of ACME', mode: 'view', by: 'ops1', is_in: false, client_ip: null, expires },
      user: 'guest',
      password: expect.stringMatching(/^\w{8}$/),
      expires,
    })
    const [event] = await h.events('session.invite')
    expect(event).toMatchObject({
      user: 'ops1',
      session: SESSION,
      object_type: 'guest',
      object: 'Bob of ACME',
      method: 'view',
      duration: 900_000,
      device: 'desk1',
    })
    const list = await h.call('GET', PATH, { cookie: own })
    expect(list.body).toEqual([body.invitation])
    expect(JSON.stringify([list.body, await h.events()])).not.toContain(body.password)
  })

  it('is for the user of the session, and for those who may end it; to others the session does not exist', async () => {
    expect((await invite(admin)).status).toBe(201)
    for (const cookie of [other, auditor]) {
      expect((await invite(cookie)).status).toBe(404)
      expect((await h.call('GET', PATH, { cookie })).status).toBe(404)
    }
    expect(
      (await h.call('GET', '/sessions/01ARZ3NDEKTSV4RRFFQ69G5FAX/invitations', { cookie: own })).status,
    ).toBe(404)
  })

  it('is not for a key that acts in the name of the user of the session, but for one that may end sessions', async () => {
    const body = { key_name: 'all', profile: 'product_administrator' }
    const { api_key: key } = (await h.call('POST', '/apikeys', { cookie: admin, body })).body
    const status = async (headers: Record<string, string>) =>
      (await h.call('POST', PATH, { headers, body: WANTED })).status
    expect(await status({ 'x-auth-key': key, 'x-auth-user': 'ops1' })).toBe(404)
    expect(await status({ 'x-auth-key': key })).toBe(201)
  })

  it('is changed and withdrawn, each with its event before', async () => {
    const { id } = (await invite()).body.invitation
    const item = `${PATH}/${id}`
    expect((await h.call('PUT', item, { cookie: other, body: { mode: 'control' } })).status).toBe(404)
    expect((await h.call('PUT', item, { cookie: own, body: { mode: 'control' } })).status).toBe(204)
    expect(notices).toMatchObject([
      { type: 'guest', invitation: id, change: { mode: 'control', by: 'ops1' } },
    ])
    expect((await h.call('DELETE', item, { cookie: admin })).status).toBe(204)
    expect((await h.call('DELETE', item, { cookie: admin })).status).toBe(404)
    expect(await h.events('session.invite_change')).toMatchObject([
      { method: 'control', object: 'Bob of ACME' },
    ])
    expect(await h.events('session.invite_withdraw')).toMatchObject([{ user: 'admin' }])
    h.audit.broken = true
    const made = await invitations.invite(RUNNING, {
      ...WANTED,
      mode: 'view',
      by: 'ops1',
      basis: { userId: owner, address: '127.0.0.1', proof: { method: 'password', revision: 1 } },
      duration: 1000,
    })
    const kept = made.result === 'invited' ? made.invitation.id : ''
    expect((await h.call('DELETE', `${PATH}/${kept}`, { cookie: own })).status).toBe(503)
    expect((await invite()).status).toBe(503)
    h.audit.broken = false
    expect(invitations.ofSession(SESSION).map(({ id }) => id)).toEqual([kept])
  })

  it.each([
    ['no mode', { duration: 900 }],
    ['another mode', { ...WANTED, mode: 'admin' }],
    ['no time', { mode: 'view' }],
    ['too short a time', { ...WANTED, duration: 59 }],
    ['too long a time', { ...WANTED, duration: 28_801 }],
    ['a name that turns the text', { ...WANTED, name: 'Bob\u202e' }],
    ['no address', { ...WANTED, client_ip: 'somewhere' }],
    ['an unknown field', { ...WANTED, target: 'x' }],
  ])('with %s is refused', async (_, body) => {
    expect((await invite(own, body)).status).toBe(400)
    expect(invitations.ofSession(SESSION)).toEqual([])
  })

  it('says why there is none', async () => {
    for (const [result, code] of [
      ['not_running', 'not_running'],
      ['not_shareable', 'not_shareable'],
      ['too_many', 'too_many_invitations'],
    ] as const) {
      refusal = result
      const { status, body } = await invite()
      expect([status, body.error]).toEqual([409, code])
    }
  })
})

/** One-time tickets: their target, user, address and lifetime. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { TICKET_LIFETIME_MS, type TicketRequest } from '../../src/gate/ticket-office.ts'
import { MAX_TICKETS_PER_USER } from '../../src/gate/tickets.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { vncAuthResponse } from '../../src/model/vnc-auth.ts'
import { newUser } from '../store/fixture.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'

let world: VncWorld
beforeEach(async () => {
  world = await vncWorld()
})
afterEach(() => world.temporary.remove())

const ask = (more: Partial<TicketRequest> = {}) =>
  world.gate.tickets.issue({
    user: world.estate.user,
    basis: world.basis(),
    target: 'root@local:srv1:vnc',
    protocol: 'VNC',
    address: SOURCE.address,
    ...more,
  })

async function ticket(more?: Partial<TicketRequest>) {
  const answer = await ask(more)
  if (answer.result !== 'issued') throw new Error(answer.result)
  return { ...answer, password: answer.password.revealText() }
}

/** Solves a challenge like a viewer that knows only the password. */
function byChallenge(password: string, address = SOURCE.address) {
  const challenge = randomBytes(16)
  const proof = { method: 'ticket', challenge, response: vncAuthResponse(challenge, password) } as const
  return world.gate.authenticate({ protocol: 'VNC', source: { address, port: 4711 }, login: '', proof })
}

const byPassword = (login: string, password: string, protocol: 'VNC' | 'SSH' = 'VNC') =>
  world.gate.authenticate({ protocol, source: SOURCE, login, proof: { method: 'password', password } })

const codes = async () => (await world.events()).map(([code]) => code)

describe('a ticket', () => {
  test('signs in by VNC authentication, and opens its target', async () => {
    const { password, login, expires } = await ticket()
    expect(password).toMatch(/^[2-9A-HJ-NP-Za-km-z]{8}$/)
    expect(login).toBe('ops1:root@local@srv1:vnc')
    expect(expires).toBe(world.clock.now + TICKET_LIFETIME_MS)
    const answer = await byChallenge(password)
    expect(answer).toMatchObject({ result: 'accepted', identity: { user: 'ops1', hasTarget: true } })
    if (answer.result !== 'accepted') return
    const identity = answer.identity.token
    expect(await world.open({ identity })).toMatchObject({
      result: 'opened',
      session: { user: 'ops1', target: { canonical: 'root@local:srv1:vnc' } },
    })
    expect((await world.events())[0]).toMatchObject([
      'auth.success',
      { user: 'ops1', method: 'ticket', protocol: 'VNC', client_ip: SOURCE.address },
    ])
  })

  test.each(['ops1:root@local@srv1:vnc', 'ops1+root@srv1', 'OPS1'])(
    'is the password of the login string %s',
    async (login) => {
      const { password } = await ticket()
      expect(await byPassword(login, password)).toMatchObject({
        result: 'accepted',
        identity: { hasTarget: true },
      })
    },
  )

  test.each(['ops1:root@srv2', 'ops1:admin@srv1', 'ops2', 'ops1:root@srv1:ssh'])(
    'is not that of %s',
    async (login) => {
      const { password } = await ticket()
      expect(await byPassword(login, password)).toEqual({ result: 'rejected' })
      expect(await byChallenge(password)).toMatchObject({ result: 'accepted' })
    },
  )

  test('is good once, whichever way', async () => {
    const first = await ticket()
    expect(await byChallenge(first.password)).toMatchObject({ result: 'accepted' })
    expect(await byChallenge(first.password)).toEqual({ result: 'rejected' })
    expect(await byPassword('ops1', first.password)).toEqual({ result: 'rejected' })
    const second = await ticket()
    const answers = await Promise.all([byChallenge(second.password), byPassword('ops1', second.password)])
    expect(answers.filter(({ result }) => result === 'accepted')).toHaveLength(1)
  })

  test('is good for its address, its protocol and its minutes', async () => {
    const { password } = await ticket()
    expect(await byChallenge(password, '192.0.2.8')).toEqual({ result: 'rejected' })
    expect(await byPassword('ops1', password, 'SSH')).toEqual({ result: 'rejected' })
    world.clock.now += TICKET_LIFETIME_MS - 1
    expect(await byChallenge(password, `::ffff:${SOURCE.address}`)).toMatchObject({ result: 'accepted' })
    const late = await ticket()
    world.clock.now += TICKET_LIFETIME_MS
    expect(await byChallenge(late.password)).toEqual({ result: 'rejected' })
  })

  test('knows an IPv6 address however it is written', async () => {
    const { password } = await ticket({ address: '2001:DB8:0:0::7' })
    expect(await byChallenge(password, '2001:db8::7')).toMatchObject({ result: 'accepted' })
  })

  test('leads to its target and to no other', async () => {
    const { temporary, estate, service } = world
    await temporary.store.authorizations.update(estate.authorization.id, { subprotocols: [] })
    const other = await temporary.store.services.create({
      deviceId: estate.device.id,
      serviceName: 'other',
      protocol: 'VNC',
      port: 5901,
      subprotocols: [],
    })
    await temporary.store.targetGroups.update(estate.targetGroup.id, {
      sessionAccounts: [service, other.id].map((serviceId) => ({ accountId: estate.account.id, serviceId })),
    })
    const { password } = await ticket()
    const answer = await byChallenge(password)
    if (answer.result !== 'accepted') throw new Error(answer.result)
    const identity = answer.identity.token
    expect(await world.gate.targets({ identity, protocol: 'VNC' })).toEqual({ targets: [], total: 0 })
    expect(await world.open({ identity, target: 'root@local:srv1:other' })).toMatchObject({
      session: { target: { canonical: 'root@local:srv1:vnc' } },
    })
  })

  test('is handed out for what its user may open only', async () => {
    expect(await ask({ target: 'root@srv1' })).toMatchObject({ result: 'issued' })
    expect(await ask({ target: 'root@srv1:ssh' })).toEqual({ result: 'unknown' })
    expect(await ask({ target: '@@' })).toEqual({ result: 'unknown' })
    const stranger = await world.temporary.store.users.create(newUser('ops2'))
    expect(await ask({ user: stranger })).toEqual({ result: 'unknown' })
  })

  test('waits beside a bounded number of others', async () => {
    for (let n = 0; n < MAX_TICKETS_PER_USER; n++) await ticket()
    expect(await ask()).toEqual({ result: 'too_many' })
    world.clock.now += TICKET_LIFETIME_MS
    await ticket()
  })
})

describe('what was taken from its user', () => {
  test.each([
    ['the account is disabled', { isDisabled: true }],
    ['the address is no longer one of theirs', { ipSource: ['10.0.0.0/8'] }],
  ])('%s: it signs in nobody', async (_, change) => {
    const { password } = await ticket()
    await world.temporary.store.users.update(world.estate.user.id, change)
    expect(await byChallenge(password)).toEqual({ result: 'rejected' })
  })

  test('the right: it opens nothing', async () => {
    const { password } = await ticket()
    await world.temporary.store.authorizations.update(world.estate.authorization.id, {
      authorizeSessions: false,
    })
    const answer = await byChallenge(password)
    if (answer.result !== 'accepted') throw new Error(answer.result)
    expect(await world.open({ identity: answer.identity.token })).toMatchObject({ result: 'denied' })
  })

  test('it does not come back with it, once the change was reviewed', async () => {
    const { store } = world.temporary
    const { user, authorization } = world.estate
    const kept = await ticket()
    await world.gate.review()
    expect(await byChallenge(kept.password)).toMatchObject({ result: 'accepted' })
    const disabled = await ticket()
    await store.users.update(user.id, { isDisabled: true })
    await world.gate.review()
    await store.users.update(user.id, { isDisabled: false })
    expect(await byChallenge(disabled.password)).toEqual({ result: 'rejected' })
    const unauthorized = await ticket()
    await store.authorizations.update(authorization.id, { authorizeSessions: false })
    await world.gate.review()
    await store.authorizations.update(authorization.id, { authorizeSessions: true })
    expect(await byChallenge(unauthorized.password)).toEqual({ result: 'rejected' })
  })
})

describe('guessing', () => {
  test('is locked out by its address, and the ticket is not used up by it', async () => {
    const { password } = await ticket()
    for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) await byChallenge(`wrong${n}`)
    expect(await byChallenge(password)).toEqual({ result: 'rejected' })
    expect((await codes()).slice(-3)).toEqual(['auth.failure', 'auth.locked', 'auth.failure'])
    const [, fields] = (await world.events()).at(-3)!
    expect(fields).toMatchObject({ method: 'ticket', reason: 'wrong_ticket', client_ip: SOURCE.address })
    expect(fields).not.toHaveProperty('user')
    world.clock.now += LOCKOUT_LIMITS.lockMs
    const next = await ticket()
    expect(await byChallenge(next.password)).toMatchObject({ result: 'accepted' })
  })

  test('counts with that of passwords, whatever the protocol', async () => {
    const { password } = await ticket()
    for (let n = 0; n < LOCKOUT_LIMITS.addressFailures; n++) {
      await world.gate.authenticate({
        protocol: 'SSH',
        source: SOURCE,
        login: `nobody${n}`,
        proof: {
          method: 'publickey',
          key: Buffer.from('no key'),
          signed: { data: Buffer.alloc(0), signature: Buffer.alloc(0) },
        },
      })
    }
    expect(await byChallenge(password)).toEqual({ result: 'rejected' })
    expect(await byPassword('ops1', password)).toEqual({ result: 'rejected' })
  })

  test('answers of another length, or none, are wrong ones', async () => {
    await ticket()
    for (const response of [new Uint8Array(0), new Uint8Array(15), new Uint8Array(17)]) {
      const proof = { method: 'ticket', challenge: randomBytes(16), response } as const
      expect(await world.gate.authenticate({ protocol: 'VNC', source: SOURCE, login: '', proof })).toEqual({
        result: 'rejected',
      })
    }
  })
})

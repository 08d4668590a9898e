/** One-time tickets for RDP: sign-in by NTLM, and the session that results. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { buildAvPairs } from '../../proxies/rdp/ntlm/av-pairs.ts'
import { TICKET_LIFETIME_MS, type TicketRequest } from '../../src/gate/ticket-office.ts'
import { LOCKOUT_LIMITS } from '../../src/identity/lockout.ts'
import { type NtlmProof, ntHash, prove, responseKey } from '../../src/model/ntlm-auth.ts'
import { RDP_OPTIONS } from '../../src/model/rdp-options.ts'
import { type RdpWorld, rdpWorld, SOURCE } from './desktop-world.ts'
import { certificate } from './own-certificate.ts'

let world: RdpWorld
beforeEach(async () => {
  world = await rdpWorld()
})
afterEach(() => world.temporary.remove())

const LOGIN = 'ops1:root@local@srv1:rdp'

async function ticket(more: Partial<TicketRequest> = {}): Promise<string> {
  const answer = await world.gate.tickets.issue({
    user: world.estate.user,
    basis: world.basis(),
    target: 'root@local:srv1:rdp',
    protocol: 'RDP',
    address: SOURCE.address,
    ...more,
  })
  if (answer.result !== 'issued') throw new Error(answer.result)
  expect(answer.login).toBe(LOGIN)
  return answer.password.revealText()
}

/**
 * Makes the proof of a client that knows the password, with the session base key as the client computes it.
 */
function proofOf(password: string, user = LOGIN, domain = ''): { proof: NtlmProof; key: Buffer } {
  const serverChallenge = randomBytes(8)
  const temp = Buffer.concat([Buffer.alloc(28, 1), buildAvPairs([])])
  const { response, sessionBaseKey } = prove(
    responseKey(ntHash(password), user, domain),
    serverChallenge,
    temp,
  )
  return { proof: { user, domain, serverChallenge, response }, key: sessionBaseKey }
}

const show = (proof: NtlmProof, { login = proof.user, address = SOURCE.address } = {}) =>
  world.gate.authenticate({
    protocol: 'RDP',
    source: { address, port: 4711 },
    login,
    proof: { method: 'ntlm', proof },
  })

const failures = async () =>
  (await world.events()).filter(([code]) => code === 'auth.failure').map(([, fields]) => fields)

describe('a ticket for RDP', () => {
  test('signs in by NTLM, with the key that the client has, and opens its target', async () => {
    const password = await ticket()
    expect(password).toMatch(/^[2-9A-HJ-NP-Za-km-z]{24}$/)
    const { proof, key } = proofOf(password)
    const answer = await show(proof)
    expect(answer).toMatchObject({ result: 'accepted', identity: { user: 'ops1', hasTarget: true } })
    if (answer.result !== 'accepted') return
    expect(answer.key).toEqual(Uint8Array.from(key))
    const identity = answer.identity.token
    expect(await world.open({ identity })).toMatchObject({
      result: 'opened',
      session: {
        target: { canonical: 'root@local:srv1:rdp', protocol: 'RDP', port: 3389 },
        credentials: [{ type: 'password', password: 'screen' }],
        rights: ['RDP', 'RDP_CLIPBOARD_UP'],
        rdpOptions: RDP_OPTIONS,
      },
    })
    expect(structuredClone(answer)).toEqual(answer)
    const client_ip = SOURCE.address
    expect((await world.events())[0]).toMatchObject([
      'auth.success',
      { user: 'ops1', method: 'ticket', protocol: 'RDP', client_ip },
    ])
  })

  test.each([
    ['OPS1+root@srv1', ''],
    ['ops1', 'CORP'],
  ])('for the login string %s, in the domain "%s"', async (user, domain) => {
    const { proof } = proofOf(await ticket(), user, domain)
    expect(await show(proof)).toMatchObject({ result: 'accepted' })
  })

  test('is the password of its login string inside TLS, too', async () => {
    const password = await ticket()
    const proof = { method: 'password', password } as const
    const answer = await world.gate.authenticate({ protocol: 'RDP', source: SOURCE, login: LOGIN, proof })
    expect(answer).toMatchObject({ result: 'accepted', identity: { hasTarget: true } })
    expect(answer).not.toHaveProperty('key')
    expect(await show(proofOf(password).proof)).toEqual({ result: 'rejected' })
  })

  test('is about the name in the proof, whatever else the client calls itself', async () => {
    const { proof } = proofOf(await ticket(), 'ops1:root@srv2')
    expect(await show(proof, { login: LOGIN })).toEqual({ result: 'rejected' })
    const right = proofOf(await ticket()).proof
    expect(await show({ ...right, user: 'ops2' })).toEqual({ result: 'rejected' })
    expect(await show({ ...right, domain: 'CORP' })).toEqual({ result: 'rejected' })
    expect(await show(right, { login: 'ops2' })).toMatchObject({
      result: 'accepted',
      identity: { user: 'ops1' },
    })
  })

  test('is good once, for its address and its minutes', async () => {
    const { proof } = proofOf(await ticket())
    expect(await show(proof, { address: '192.0.2.8' })).toEqual({ result: 'rejected' })
    const both = await Promise.all([show(proof), show(proof)])
    expect(both.map(({ result }) => result).sort()).toEqual(['accepted', 'rejected'])
    const late = proofOf(await ticket()).proof
    world.clock.now += TICKET_LIFETIME_MS
    expect(await show(late)).toEqual({ result: 'rejected' })
  })

  test('does not come back when it was taken back with a right', async () => {
    const { store } = world.temporary
    const { id } = world.estate.authorization
    const { proof } = proofOf(await ticket())
    await store.authorizations.update(id, { subprotocols: ['RDP_DRIVE'] })
    await world.gate.review()
    await store.authorizations.update(id, { subprotocols: ['RDP'] })
    expect(await show(proof)).toEqual({ result: 'rejected' })
  })
})

describe('guessing by NTLM', () => {
  test('is told nothing: a wrong password, an unknown name and a user’s own password are one answer', async () => {
    const password = await ticket()
    const answers = [
      await show(proofOf('wrong').proof),
      await show(proofOf(password, 'nobody').proof),
      await show(proofOf('ops1 password', 'ops1').proof),
      await show({ ...proofOf(password).proof, response: new Uint8Array(0) }),
    ]
    expect(answers).toEqual(answers.map(() => ({ result: 'rejected' })))
    expect((await failures()).map(({ user, reason }) => [user, reason])).toEqual([
      ['ops1', 'wrong_ticket'],
      ['nobody', 'wrong_ticket'],
      ['ops1', 'wrong_ticket'],
      ['ops1', 'wrong_ticket'],
    ])
  })

  test('locks the user out there, with the right ticket too, until the lock is over', async () => {
    for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++) await show(proofOf(`wrong${n}`).proof)
    expect((await world.events()).at(-1)).toMatchObject(['auth.locked', { user: 'ops1', protocol: 'RDP' }])
    const { proof } = proofOf(await ticket())
    expect(await show(proof)).toEqual({ result: 'rejected' })
    const password = { method: 'password', password: 'ops1 password' } as const
    const byPassword = () =>
      world.gate.authenticate({ protocol: 'RDP', source: SOURCE, login: LOGIN, proof: password })
    expect(await byPassword()).toEqual({ result: 'rejected' })
    world.clock.now += LOCKOUT_LIMITS.lockMs
    expect(await show(proofOf(await ticket()).proof)).toMatchObject({ result: 'accepted' })
    expect(await byPassword()).toMatchObject({ result: 'accepted' })
  })

  test('counts a name that is no login string, and says how one is written', async () => {
    expect(await show(proofOf('x', 'ops1:@@').proof)).toMatchObject({ result: 'malformed' })
    expect(await failures()).toMatchObject([{ method: 'ticket', reason: 'malformed login string' }])
  })
})

describe('a target of RDP', () => {
  test('is in the list of RDP only, and opened by RDP only', async () => {
    const listed = async (protocol: 'RDP' | 'VNC' | 'SSH') =>
      (await world.gate.targets({ identity: await world.signIn('ops1', protocol), protocol })).targets.map(
        ({ target }) => target,
      )
    expect(await listed('RDP')).toEqual(['root@local:srv1:rdp'])
    expect(await listed('VNC')).toEqual([])
    expect(await listed('SSH')).toEqual([])
    const target = 'root@local:srv1:rdp'
    const identity = await world.signIn('ops1', 'VNC')
    expect(await world.open({ identity, target, protocol: 'VNC' })).toMatchObject({ result: 'denied' })
  })

  test('is not opened without the right RDP, or without a password for its account', async () => {
    const { store } = world.temporary
    await world.vault.setCredentials(world.estate.account.id, [])
    expect(await world.open()).toMatchObject({
      result: 'denied',
      message: expect.stringContaining('no credential is stored'),
    })
    await store.authorizations.update(world.estate.authorization.id, {
      subprotocols: ['RDP_CLIPBOARD_UP', 'RDP_DRIVE'],
    })
    expect(await world.open()).toMatchObject({ result: 'denied' })
  })

  test('of interactive login is asked for at the sign-in where the login string names it, else at its opening', async () => {
    await world.temporary.store.targetGroups.update(world.estate.targetGroup.id, {
      sessionAccounts: [],
      interactiveServiceIds: [world.service],
    })
    const proof = { method: 'password', password: 'ops1 password' } as const
    const login = 'ops1:@srv1:rdp'
    const asked = await world.gate.authenticate({ protocol: 'RDP', source: SOURCE, login, proof })
    if (asked.result !== 'challenge') throw new Error(asked.result)
    expect(asked.challenge.prompts).toMatchObject([{ text: 'Login at srv1:rdp: ' }, { echo: false }])
    const identity = await world.signIn('ops1')
    expect(await world.open({ identity, target: '@srv1:rdp' })).toMatchObject({
      result: 'logon_needed',
      question: { target: 'srv1:rdp' },
    })
  })

  test('shows a certificate, whose key is pinned: another one is refused with an alert', async () => {
    const { gate } = world
    const { id: session } = await world.opened()
    const first = await certificate()
    expect(await gate.hostKey({ session, key: first, kind: 'x509' })).toEqual({ result: 'accepted' })
    const next = await world.opened()
    expect(next.hostKeyTypes).toEqual(['x509'])
    const other = { session: next.id, key: await certificate(), kind: 'x509' } as const
    expect(await gate.hostKey(other)).toMatchObject({
      result: 'refused',
      message: expect.stringContaining('has changed (now x509 SHA256:'),
    })
    expect((await world.events()).at(-1)).toMatchObject([
      'hostkey.changed',
      { protocol: 'RDP', method: 'x509' },
    ])
  })

  test('is given what its policy says', async () => {
    await world.setPolicy({ security: ['tls'], redirectTo: ['10.0.0.0/8'] })
    const { rdpOptions } = await world.opened()
    expect(rdpOptions).toEqual({ ...RDP_OPTIONS, security: ['tls'], redirectTo: ['10.0.0.0/8'] })
  })
})

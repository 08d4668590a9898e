/**
 * Removed rights take effect at once: connections, sessions, tickets and invitations end with their basis.
 */
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { AuthenticateAnswer, GateNotice } from '../../src/contract/gate.ts'
import { Authorities, type LaterFlaw, RevocationFile } from '../../src/identity/authorities.ts'
import type { Basis } from '../../src/identity/basis.ts'
import type { ApiKey, User } from '../../src/model/objects.ts'
import { FACTORY_PROFILES } from '../../src/model/profiles.ts'
import { Secret } from '../../src/model/secret.ts'
import { vncAuthResponse } from '../../src/model/vnc-auth.ts'
import type { Store } from '../../src/store/store.ts'
import { opensshKey, signedData } from '../identity/keys.ts'
import { newUser } from '../store/fixture.ts'
import { SOURCE, type VncWorld, vncWorld } from './desktop-world.ts'

const KEY = opensshKey('ed25519')
const LATER = 60_000

let world: VncWorld
let store: Store
let user: User
let notices: GateNotice[]
beforeEach(async () => {
  world = await vncWorld()
  store = world.temporary.store
  user = await store.users.update(world.estate.user.id, {
    userAuths: ['local_password', 'local_sshkey'],
    sshPublicKeys: [KEY.line],
  })
  notices = []
  world.gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => world.temporary.remove())

const events = async (code: string) =>
  (await world.events()).filter(([one]) => one === code).map(([, fields]) => fields)

const tokenOf = (answer: AuthenticateAnswer): string => {
  if (answer.result !== 'accepted') throw new Error(answer.result)
  return answer.identity.token
}

async function byKey(login = world.login): Promise<string> {
  const data = signedData(login, 'ssh-ed25519', KEY.blob)
  const signed = { data, signature: KEY.sign(data, 'ssh-ed25519') }
  const proof = { method: 'publickey', key: KEY.blob, signed } as const
  return tokenOf(await world.gate.authenticate({ protocol: 'VNC', source: SOURCE, login, proof }))
}

test('a signature signs in once: a proxy that was taken over cannot sign its users in again with it', async () => {
  const data = signedData(world.login, 'ssh-ed25519', KEY.blob)
  const signed = { data, signature: KEY.sign(data, 'ssh-ed25519') }
  const proof = { method: 'publickey', key: KEY.blob, signed } as const
  const request = { protocol: 'VNC', source: SOURCE, login: world.login, proof } as const
  expect(await world.gate.authenticate(request)).toMatchObject({ result: 'accepted' })
  expect(await world.gate.authenticate(request)).toEqual({ result: 'rejected' })
})

/** Signs in as a viewer that knows only a ticket's password. */
const byTicket = (password: string) => {
  const challenge = randomBytes(16)
  const proof = { method: 'ticket', challenge, response: vncAuthResponse(challenge, password) } as const
  return world.gate.authenticate({ protocol: 'VNC', source: SOURCE, login: '', proof })
}

/** Issues a ticket on this basis. */
async function ticket(basis: Basis = world.basis()): Promise<string> {
  const target = 'root@local:srv1:vnc'
  const asked = { user, basis, target, protocol: 'VNC', address: SOURCE.address } as const
  const answer = await world.gate.tickets.issue(asked)
  if (answer.result !== 'issued') throw new Error(answer.result)
  return answer.password.revealText()
}

async function opened(identity: string): Promise<string> {
  const answer = await world.open({ identity })
  if (answer.result !== 'opened') throw new Error(JSON.stringify(answer))
  return answer.session.id
}

async function apiKey(more: Partial<ApiKey> = {}): Promise<{ key: ApiKey; basis: Basis }> {
  const key = await store.apiKeys.create({
    keyName: 'gateway',
    profile: 'product_administrator',
    ipSource: [],
    createdAt: 0,
    ...more,
  })
  const proof = { method: 'api_key', id: key.id, name: key.keyName } as const
  return { key, basis: { userId: user.id, address: '203.0.113.5', proof } }
}

const setPassword = () => world.identities.setPassword(user.id, Secret.of('another one'))
const update = (change: Partial<User>) => store.users.update(user.id, change)

const ANY: [string, () => Promise<unknown>][] = [
  ['the user is disabled', () => update({ isDisabled: true })],
  ['the user is given an end that has come', () => update({ expirationDate: world.clock.now })],
  ['the user may come from elsewhere only', () => update({ ipSource: ['10.0.0.0/8'] })],
  ['the user is removed', () => store.users.remove(user.id)],
  ['the user is in the group no longer', () => update({ groupIds: [] })],
  ['the authorization is removed', () => store.authorizations.remove(world.estate.authorization.id)],
]
const OF_PASSWORD: typeof ANY = [
  ['the password is replaced', setPassword],
  ['passwords are no longer a way in', () => update({ userAuths: ['local_sshkey'] })],
]
const OF_KEY: typeof ANY = [
  ['the key is taken away', () => update({ sshPublicKeys: [] })],
  ['keys are no longer a way in', () => update({ userAuths: ['local_password'] })],
]

describe.each([
  ['password', () => world.signIn('ops1'), [...ANY, ...OF_PASSWORD]],
  ['key', () => byKey('ops1'), [...ANY, ...OF_KEY]],
] as const)('somebody in the menu, who came by %s', (_, signIn, changes) => {
  test.each(changes)('is out when %s', async (__, change) => {
    const identity = await signIn()
    expect(await world.gate.targets({ identity, protocol: 'VNC' })).toMatchObject({ total: 1 })
    await world.gate.review()
    expect(notices).toEqual([])
    await change()
    await world.gate.review()
    expect(notices).toMatchObject([{ type: 'leave', identity, reason: expect.any(String) }])
    await expect(world.gate.targets({ identity, protocol: 'VNC' })).rejects.toThrow('no longer signed in')
    await expect(world.open({ identity, target: 'root@local:srv1:vnc' })).rejects.toThrow()
    const told = { user: 'ops1', client_ip: SOURCE.address, protocol: 'VNC', reason: expect.any(String) }
    expect(await events('auth.withdraw')).toMatchObject([told])
    // Notified again, since the connection may not have existed yet, but audited once.
    world.gate.remind()
    await world.gate.review()
    expect(notices).toHaveLength(2)
    expect(await events('auth.withdraw')).toHaveLength(1)
    await world.gate.leave({ identity })
    world.gate.remind()
    expect(notices).toHaveLength(2)
  })

  test('stays when somebody else’s is taken away, and when what it does not rest on is', async () => {
    const other = await store.users.create(newUser('ops2'))
    const identity = await signIn()
    await world.gate.targets({ identity, protocol: 'VNC' })
    await store.users.remove(other.id)
    await update({ displayName: 'Ops One', profile: 'auditor' })
    await world.gate.review()
    expect(notices).toEqual([])
  })
})

describe.each([
  ['password', () => world.signIn(), [...ANY, ...OF_PASSWORD]],
  ['key', () => byKey(), [...ANY, ...OF_KEY]],
  [
    'a ticket that a cookie got',
    async () => tokenOf(await byTicket(await ticket())),
    [...ANY, ...OF_PASSWORD],
  ],
] as const)('a running session of somebody who came by %s', (_, signIn, changes) => {
  test.each(changes)('ends when %s', async (__, change) => {
    const session = await opened(await signIn())
    await world.gate.review()
    expect(notices).toEqual([])
    await change()
    await world.gate.review()
    expect(notices).toContainEqual({ type: 'stop', session, reason: expect.any(String) })
    expect(await events('session.kill')).toMatchObject([{ session, reason: expect.any(String) }])
    notices.length = 0
    world.gate.remind()
    expect(notices).toContainEqual({ type: 'stop', session, reason: expect.any(String) })
    await world.gate.review()
    expect(await events('session.kill')).toHaveLength(1)
  })
})

test('who came by key keeps the session when the password is replaced, and the other way about', async () => {
  const [key, password] = [await opened(await byKey()), await opened(await world.signIn())]
  await setPassword()
  await world.gate.review()
  expect(notices.map((notice) => notice.type === 'stop' && notice.session)).toContain(password)
  expect(notices.map((notice) => notice.type === 'stop' && notice.session)).not.toContain(key)
})

describe('a one-time ticket', () => {
  test.each([...ANY, ...OF_PASSWORD])('is good no longer when %s', async (_, change) => {
    const password = await ticket()
    await change()
    await world.gate.review()
    expect(await events('ticket.withdraw')).toMatchObject([{ user: 'ops1', device: 'srv1' }])
    expect(await byTicket(password)).toEqual({ result: 'rejected' })
  })

  test('is refused at once, before any review', async () => {
    const password = await ticket()
    await setPassword()
    expect(await byTicket(password)).toEqual({ result: 'rejected' })
  })

  test('ends with the right by which it was had, and so does its session', async () => {
    const needs = { feature: 'targets', level: 'view' } as const
    const [first, second] = [
      await ticket({ ...world.basis(), needs }),
      await ticket({ ...world.basis(), needs }),
    ]
    const session = await opened(tokenOf(await byTicket(first)))
    const { id } = await store.profiles.create({
      profileName: 'reduced',
      description: '',
      rights: FACTORY_PROFILES.user,
      isFactory: false,
    })
    await update({ profile: 'reduced' })
    await world.gate.review()
    expect(notices).toEqual([])
    await store.profiles.update(id, { rights: { ...FACTORY_PROFILES.user, targets: 'none' } })
    await world.gate.review()
    expect(notices).toContainEqual({
      type: 'stop',
      session,
      reason: 'the right "targets: view" was taken away',
    })
    expect(await byTicket(second)).toEqual({ result: 'rejected' })
  })

  test.each<[string, (key: ApiKey) => Promise<unknown>]>([
    ['is removed', ({ id }) => store.apiKeys.remove(id)],
    ['has expired', ({ id }) => store.apiKeys.update(id, { expirationDate: world.clock.now })],
    ['may not come from there any more', ({ id }) => store.apiKeys.update(id, { ipSource: ['10.0.0.0/8'] })],
    [
      'acts for others only',
      ({ id }) => store.apiKeys.update(id, { actsFor: { userIds: [], groupIds: [] } }),
    ],
    [
      'has a lower profile',
      ({ id }) => store.apiKeys.update(id, { profile: 'sallyport_access_manager_audit' }),
    ],
    ['acts for a user who has got beyond its maker', () => update({ profile: 'product_administrator' })],
  ])('that an API key got ends when the key %s, and its session names the key', async (_, change) => {
    const { key, basis } = await apiKey({ reach: FACTORY_PROFILES.operator })
    const needs = { feature: 'targets', level: 'view' } as const
    const [used, unused] = [await ticket({ ...basis, needs }), await ticket({ ...basis, needs })]
    const session = await opened(tokenOf(await byTicket(used)))
    const { gate } = world
    await gate.event({ session, code: 'channel.open', fields: { subprotocol: 'VNC' } })
    await gate.review()
    expect(notices).toEqual([])
    await change(key)
    await gate.review()
    expect(notices).toContainEqual({ type: 'stop', session, reason: expect.stringContaining('') })
    expect(await byTicket(unused)).toEqual({ result: 'rejected' })
    await gate.close({ session, result: 'killed', bytesIn: 0, bytesOut: 0, rightsUsed: ['VNC'] })
    const named = { user: 'ops1', api_key: 'gateway' }
    for (const code of [
      'session.open',
      'channel.open',
      'session.close',
      'recording.failed',
      'ticket.withdraw',
    ]) {
      expect([code, await events(code)]).toMatchObject([code, [named]])
    }
    expect(await events('auth.success')).toMatchObject([named])
    expect(await store.sessions.find(session)).toMatchObject({ apiKey: 'gateway' })
    // No user has ended it, least of all the key that opened it.
    for (const kill of await events('session.kill')) expect(kill).not.toHaveProperty('api_key')
  })
})

describe('an invitation', () => {
  const needs = { feature: 'sessions', level: 'execute' } as const
  let session: string
  let admin: User
  let basis: Basis
  const KILLERS = 'killers'

  beforeEach(async () => {
    session = await opened(await world.signIn())
    await store.profiles.create({
      profileName: KILLERS,
      description: '',
      rights: { ...FACTORY_PROFILES.user, sessions: 'execute' },
      isFactory: false,
    })
    admin = await store.users.create(newUser('boss', { profile: KILLERS }))
    basis = { userId: admin.id, address: '203.0.113.5', proof: { method: 'password', revision: 0 }, needs }
  })

  const invite = async (by: Basis = basis): Promise<{ id: string; password: string }> => {
    const request = { name: 'Bob', mode: 'view', by: 'boss', basis: by, duration: LATER } as const
    const answer = await world.gate.invite(session, request)
    if (answer.result !== 'invited') throw new Error(answer.result)
    return { id: answer.invitation.id, password: answer.password.revealText() }
  }

  const GIVERS: [string, () => Promise<unknown>][] = [
    ['is disabled', () => store.users.update(admin.id, { isDisabled: true })],
    ['has another password', () => world.identities.setPassword(admin.id, Secret.of('another one'))],
    ['has a lower profile', () => store.users.update(admin.id, { profile: 'user' })],
    [
      'has a profile that lost the right',
      async () =>
        store.profiles.update((await store.profiles.find(KILLERS))!.id, { rights: FACTORY_PROFILES.user }),
    ],
    ['is removed', () => store.users.remove(admin.id)],
  ]

  test.each(GIVERS)('is good no longer when who gave it %s', async (_, change) => {
    const { password } = await invite()
    await world.gate.review()
    expect(world.gate.invitations(session)).toHaveLength(1)
    await change()
    await world.gate.review()
    expect(world.gate.invitations(session)).toEqual([])
    expect(await byTicket(password)).toEqual({ result: 'rejected' })
    expect(await events('session.invite_withdraw')).toMatchObject([
      { session, user: 'boss', object: 'Bob', reason: expect.any(String) },
    ])
    expect(notices).toEqual([])
  })

  test.each(GIVERS)('its guest has to leave when who gave it %s', async (_, change) => {
    const { id, password } = await invite()
    expect(await byTicket(password)).toMatchObject({ result: 'accepted' })
    await change()
    await world.gate.review()
    await world.gate.review()
    expect(notices).toEqual([
      { type: 'guest', session, invitation: id, change: { out: 'boss may not invite you any more' } },
    ])
    expect(await events('session.invite_withdraw')).toHaveLength(1)
  })

  test('lets nobody in whose giver may not invite any more, before any review', async () => {
    const { password } = await invite()
    await store.users.update(admin.id, { profile: 'user' })
    expect(await byTicket(password)).toEqual({ result: 'rejected' })
    expect(await events('session.guest_join')).toEqual([])
  })

  test('falls with who has let the guest do more, too', async () => {
    const { id } = await invite(world.basis())
    world.gate.setGuestMode(id, 'control', 'boss', basis)
    await store.users.update(admin.id, { isDisabled: true })
    await world.gate.review()
    expect(world.gate.invitations(session)).toEqual([])
  })

  test('of a session that is being ended lets nobody in', async () => {
    const { password } = await invite()
    await world.gate.kill(session, 'enough', 'admin')
    expect(await byTicket(password)).toEqual({ result: 'rejected' })
  })

  test('from an API key names it', async () => {
    const { key, basis: byApiKey } = await apiKey()
    const { password } = await invite({ ...byApiKey, userId: undefined, needs })
    await byTicket(password)
    expect(await events('session.guest_join')).toMatchObject([{ user: 'boss', api_key: 'gateway' }])
    await store.apiKeys.remove(key.id)
    await world.gate.review()
    expect(await events('session.invite_withdraw')).toMatchObject([{ api_key: 'gateway' }])
  })
})

describe('between the sign-in and the session', () => {
  class Revoked extends Authorities {
    isRevoked = false
    override flawSince(): LaterFlaw | undefined {
      return this.isRevoked ? 'revoked' : undefined
    }
  }

  test('a key that was revoked opens nothing', async () => {
    const authorities = new Revoked()
    world.identities.authorities = authorities
    const identity = await byKey()
    authorities.isRevoked = true
    expect(await world.open({ identity })).toMatchObject({ result: 'denied' })
    expect(await events('session.denied')).toMatchObject([{ reason: expect.stringContaining('revoked') }])
    expect(world.gate.running).toBe(0)
  })

  test.each([
    ['password', setPassword],
    ['key', () => update({ sshPublicKeys: [] })],
  ])('a %s that was taken away opens nothing', async (method, change) => {
    const identity = method === 'key' ? await byKey() : await world.signIn()
    await change()
    expect(await world.open({ identity })).toMatchObject({ result: 'denied' })
  })

  test('what goes while the session is being opened is no credential’s way out', async () => {
    const identity = await world.signIn()
    const { create } = store.sessions
    store.sessions.create = async (record) => {
      await create(record)
      await setPassword()
    }
    const answer = await world.open({ identity })
    if (answer.result !== 'opened') throw new Error(answer.result)
    expect(answer.session.credentials).toEqual([])
    expect(notices).toMatchObject([{ type: 'stop', session: answer.session.id }])
  })

  test('a session that was ended while it opens gets no host key accepted', async () => {
    const session = await opened(await world.signIn())
    await world.gate.kill(session, 'enough', 'admin')
    expect(await world.gate.hostKey({ session, key: KEY.blob })).toEqual({
      result: 'refused',
      message: 'ended by admin: enough',
    })
  })

  test('a password that is replaced while its sign-in is written to the audit signs in nobody', async () => {
    const { append } = store.audit
    store.audit.append = async (rows) => {
      await append(rows)
      if (rows.some(({ code }) => code === 'auth.success')) await setPassword()
    }
    await expect(world.signIn()).rejects.toThrow('rejected')
    expect(await events('auth.withdraw')).toHaveLength(1)
  })
})

describe('what begins on a right that went, and was reviewed, in the meantime', () => {
  test('a ticket is good no longer after the next review', async () => {
    const basis = world.basis()
    await world.gate.review()
    await update({ isDisabled: true })
    await world.gate.review()
    await ticket(basis)
    await world.gate.review()
    expect(await events('ticket.withdraw')).toMatchObject([{ reason: 'the user is disabled' }])
  })

  test('an invitation, and a mode that somebody gave, neither', async () => {
    const session = await opened(await byKey())
    const boss = await store.users.create(newUser('boss'))
    const basis: Basis = {
      userId: boss.id,
      address: '203.0.113.5',
      proof: { method: 'password', revision: 0 },
    }
    await store.users.remove(boss.id)
    await world.gate.review()
    const asked = { name: 'Bob', mode: 'view', duration: LATER } as const
    await world.gate.invite(session, { ...asked, by: 'boss', basis })
    const other = await world.gate.invite(session, { ...asked, by: 'ops1', basis: world.basis() })
    if (other.result !== 'invited') throw new Error(other.result)
    await world.gate.review()
    expect(world.gate.invitations(session)).toMatchObject([{ by: 'ops1' }])
    world.gate.setGuestMode(other.invitation.id, 'control', 'boss', basis)
    await world.gate.review()
    expect(world.gate.invitations(session)).toEqual([])
  })

  test('a menu of targets that have gone is closed', async () => {
    const identity = await world.signIn('ops1')
    await world.gate.review()
    const { sessionTargets } = store.access
    store.access.sessionTargets = async (...asked) => {
      store.access.sessionTargets = sessionTargets
      const rows = await sessionTargets(...asked)
      await update({ groupIds: [] })
      await world.gate.review()
      return rows
    }
    expect(await world.gate.targets({ identity, protocol: 'VNC' })).toMatchObject({ total: 1 })
    expect(notices).toEqual([])
    await world.gate.review()
    expect(notices).toMatchObject([{ type: 'leave', identity, reason: 'nothing is left that you may open' }])
  })

  test('a session that could not be judged when it was opened is none', async () => {
    const identity = await world.signIn()
    await world.gate.review()
    const { append } = store.audit
    store.audit.append = async (rows) => {
      await append(rows)
      if (!rows.some(({ code }) => code === 'session.open')) return
      await store.authorizations.remove(world.estate.authorization.id)
      await world.gate.review()
    }
    const { grants } = store.access
    store.access.grants = async () => {
      store.access.grants = grants
      throw new Error('database is locked')
    }
    await expect(world.open({ identity })).rejects.toThrow('database is locked')
    expect(world.gate.running).toBe(0)
    expect(await events('session.close')).toMatchObject([{ reason: 'its rights could not be looked up' }])
  })
})

test('a change that comes while others are reviewed is looked at again, and that is waited for', async () => {
  const session = await opened(await world.signIn())
  await opened(await byKey())
  const { grants } = store.access
  let next: Promise<void> | undefined
  store.access.grants = async (...asked) => {
    // Both users have been judged by now.
    if (!next) {
      await setPassword()
      next = world.gate.review()
    }
    return await grants(...asked)
  }
  await world.gate.review()
  expect(notices).toEqual([])
  await next
  expect(notices.filter(({ type }) => type === 'stop')).toMatchObject([{ session }])
  expect(await events('session.kill')).toMatchObject([{ session }])
})

describe('when all is taken away at once', () => {
  /** Opens two sessions, one of them with a guest, two menus, and two tickets. */
  async function everything() {
    const sessions = [await opened(await world.signIn()), await opened(await world.signIn())]
    const menus = [await world.signIn('ops1'), await world.signIn('ops1')]
    const tickets = [await ticket(), await ticket()]
    const asked = { name: 'Bob', mode: 'control', by: 'ops1', basis: world.basis(), duration: LATER } as const
    const guest = await world.gate.invite(sessions[0]!, asked)
    if (guest.result !== 'invited') throw new Error(guest.result)
    expect(await byTicket(guest.password.revealText())).toMatchObject({ result: 'accepted' })
    return { sessions, menus, tickets, invitation: guest.invitation.id }
  }

  /** Expects that all were notified, and that no ticket is valid. */
  async function expectOut({ sessions, menus, tickets, invitation }: Awaited<ReturnType<typeof everything>>) {
    for (const session of sessions) expect(notices).toContainEqual(expect.objectContaining({ session }))
    for (const identity of menus) expect(notices).toContainEqual(expect.objectContaining({ identity }))
    expect(notices).toContainEqual(expect.objectContaining({ type: 'guest', invitation }))
    await update({ isDisabled: false })
    for (const password of tickets) expect(await byTicket(password)).toEqual({ result: 'rejected' })
  }

  test('everybody is told before anything is written', async () => {
    const all = await everything()
    const other = await store.users.create(newUser('ops2', { groupIds: user.groupIds }))
    await world.identities.setPassword(other.id, Secret.of('ops1 password'))
    const identity = await world.signIn('ops2')
    const { promise: written, resolve: write } = Promise.withResolvers<void>()
    const { append } = store.audit
    const seen = Promise.withResolvers<number>()
    store.audit.append = async (rows) => {
      seen.resolve(notices.length)
      await written
      await append(rows)
    }
    await update({ isDisabled: true })
    const review = world.gate.review()
    // The sessions, the four sign-ins, and the guest.
    expect(await seen.promise).toBeGreaterThanOrEqual(7)
    // Others are reviewed while the log hangs.
    expect(notices).not.toContainEqual(expect.objectContaining({ identity }))
    await store.users.remove(other.id)
    const again = world.gate.review()
    await expect.poll(() => notices).toContainEqual(expect.objectContaining({ identity }))
    write()
    await Promise.all([review, again])
    expect(await events('session.kill')).toHaveLength(2)
    expect(await events('ticket.withdraw')).toHaveLength(2)
    await expectOut(all)
  })

  test('all of it goes though nothing can be written, and the failure is told', async () => {
    const all = await everything()
    const { append } = store.audit
    store.audit.append = () => Promise.reject(new Error('disk full'))
    await update({ isDisabled: true })
    await expect(world.gate.review()).rejects.toThrow('the audit log could not be written')
    store.audit.append = append
    await expectOut(all)
  })

  test('all of it goes but what cannot be judged, which the next review does', async () => {
    const all = await everything()
    await world.gate.review()
    await update({ isDisabled: true })
    const { some } = store.users
    store.users.some = async () => {
      store.users.some = some
      throw new Error('disk I/O error')
    }
    await expect(world.gate.review()).rejects.toThrow('disk I/O error')
    const told = () => notices.map(({ type }) => type)
    expect(told()).toContain('leave')
    expect(told()).not.toContain('stop')
    await world.gate.review()
    await expectOut(all)
  })

  test('nothing is lost while the changes cannot be read, nor who was in the group', async () => {
    const all = await everything()
    await world.gate.review()
    const { after } = store.changes
    store.changes.after = () => Promise.reject(new Error('database is locked'))
    await store.authorizations.remove(world.estate.authorization.id)
    await expect(world.gate.review()).rejects.toThrow('database is locked')
    store.changes.after = after
    const { membersAmong } = store.access
    store.access.membersAmong = () => Promise.reject(new Error('database is locked again'))
    await expect(world.gate.review()).rejects.toThrow('database is locked again')
    expect(notices).toEqual([])
    store.access.membersAmong = membersAmong
    await world.gate.review()
    for (const session of all.sessions)
      expect(notices).toContainEqual(expect.objectContaining({ type: 'stop', session }))
  })
})

describe('a review without a word from who wrote', () => {
  /** Opens the same database as another process would. */
  async function elsewhere<T>(work: (other: Store) => Promise<T>): Promise<T> {
    const other = await world.temporary.open()
    try {
      return await work(other)
    } finally {
      await other.close()
    }
  }

  test('finds what another process has changed, and asks nothing when nothing was', async () => {
    const session = await opened(await world.signIn())
    await world.gate.review()
    let asked = 0
    const { some } = store.users
    store.users.some = (ids) => {
      asked++
      return some(ids)
    }
    await world.gate.review()
    expect(asked).toBe(0)
    // Of no session's user.
    await elsewhere(({ users }) => users.create(newUser('ops2')))
    await world.gate.review()
    expect(asked).toBe(0)
    await elsewhere(({ users }) => users.update(user.id, { isDisabled: true }))
    await world.gate.review()
    expect(notices).toContainEqual({ type: 'stop', session, reason: 'the user is disabled' })
  })

  test('finds who has expired meanwhile, and whose API key has', async () => {
    await update({ expirationDate: world.clock.now + LATER })
    const session = await opened(await world.signIn())
    const menu = await world.signIn('ops1')
    await world.gate.review()
    world.clock.now += LATER
    await world.gate.review()
    expect(notices).toContainEqual({ type: 'stop', session, reason: 'the user has expired' })
    expect(notices).toContainEqual({ type: 'leave', identity: menu, reason: 'the user has expired' })
    await update({ expirationDate: undefined })
    const { basis } = await apiKey({ expirationDate: world.clock.now + LATER })
    const other = await opened(tokenOf(await byTicket(await ticket(basis))))
    await world.gate.review()
    world.clock.now += LATER
    await world.gate.review()
    expect(notices).toContainEqual({ type: 'stop', session: other, reason: 'the API key has expired' })
    const { basis: brief } = await apiKey({ keyName: 'brief', expirationDate: world.clock.now + LATER })
    await ticket(brief)
    await world.gate.review()
    expect(await events('ticket.withdraw')).toEqual([])
    world.clock.now += LATER
    await world.gate.review()
    expect(await events('ticket.withdraw')).toMatchObject([{ reason: 'the API key has expired' }])
  })

  test('finds who expires while the database is away, as far as it was known before', async () => {
    const unlimited = await opened(await world.signIn())
    const { basis } = await apiKey({ expirationDate: world.clock.now + LATER })
    const session = await opened(tokenOf(await byTicket(await ticket(basis))))
    await world.gate.review()
    const { some } = store.users
    store.users.some = () => Promise.reject(new Error('it is away'))
    const { reach } = store
    store.reach = { ...reach, away: { since: world.clock.now, reason: 'it is away' } }
    world.clock.now += LATER - 1
    await world.gate.review()
    expect(notices).toEqual([])
    world.clock.now += 1
    await world.gate.review()
    const reason = 'the user, or the key, token or certificate of the sign-in, has expired'
    expect(notices).toEqual([{ type: 'stop', session, reason }])
    expect(await events('session.kill')).toMatchObject([{ session, reason }])
    await world.gate.review()
    store.users.some = some
    store.reach = reach
    await world.gate.reviewAll()
    // The connection, too.
    expect(notices.slice(1)).toMatchObject([{ type: 'leave', reason: 'the API key has expired' }])
    expect(world.gate.isRunning(unlimited)).toBe(true)
  })

  test.each([
    ['extended', 100 * LATER],
    ['left without an end', undefined],
  ])('lets a user who was %s go on while the database is away', async (_, more) => {
    await update({ expirationDate: world.clock.now + LATER })
    const session = await opened(await world.signIn())
    await world.gate.review()
    await update({ expirationDate: more === undefined ? undefined : world.clock.now + more })
    await world.gate.review()
    const { reach } = store
    store.reach = { ...reach, away: { since: world.clock.now, reason: 'it is away' } }
    world.clock.now += LATER
    await world.gate.review()
    store.reach = reach
    expect(notices).toEqual([])
    expect(world.gate.isRunning(session)).toBe(true)
  })

  test('finds a key that was revoked, of a session and of somebody in the menu', async () => {
    const list = `${world.temporary.path}.revoked`
    writeFileSync(list, '# none\n')
    world.identities.authorities = new Authorities([], new RevocationFile(list))
    const [menu, session] = [await byKey('ops1'), await opened(await byKey())]
    const other = await opened(await world.signIn())
    await world.gate.review()
    writeFileSync(list, `${KEY.line}\n`)
    await world.gate.review()
    expect(notices).toContainEqual(expect.objectContaining({ type: 'leave', identity: menu }))
    expect(notices).toContainEqual(expect.objectContaining({ type: 'stop', session }))
    expect(notices).not.toContainEqual(expect.objectContaining({ session: other }))
  })

  test('judges by other authorities what rests on keys', async () => {
    const session = await opened(await byKey())
    await world.gate.review()
    const list = `${world.temporary.path}.revoked`
    writeFileSync(list, `${KEY.line}\n`)
    world.identities.authorities = new Authorities([], new RevocationFile(list))
    await world.gate.review()
    expect(notices).toContainEqual(expect.objectContaining({ type: 'stop', session }))
  })
})

/** Account mapping and interactive login at the gate: the prompts, and the secrets that are kept. */

import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { AuditLog } from '../../src/audit/log.ts'
import type { AuthenticateAnswer, GateNotice, OpenRequest, OpenSession } from '../../src/contract/gate.ts'
import { BrokerGate } from '../../src/gate/gate.ts'
import { Invitations } from '../../src/gate/invitations.ts'
import { SignIns } from '../../src/gate/sign-ins.ts'
import { Tickets } from '../../src/gate/tickets.ts'
import { newSshKey } from '../../src/host/ssh-keys.ts'
import { Identities } from '../../src/identity/chain.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import type { AuthenticationMethod } from '../../src/model/authentication-methods.ts'
import { FACTORY_CONNECTION_POLICIES } from '../../src/model/objects.ts'
import { Secret } from '../../src/model/secret.ts'
import { openRecordingKeys, RecordingService } from '../../src/recording-service/service.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { quickHasher } from '../identity/quick-hasher.ts'
import { type Estate, newUser, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { groundsOn } from './grounds.ts'
import { hostKey } from './host-key.ts'

const SOURCE = { address: '192.0.2.7', port: 4711 }

let temporary: TemporaryStore
let estate: Estate
let gate: BrokerGate
let vault: Vault
let notices: GateNotice[]
/** The sign-ins as the gate has them. */
let signIns: SignIns

/** Replaces ops1's stored account in the target group by `interactive` and `mapping`. */
async function hold(held: { interactive?: boolean; mapping?: boolean }): Promise<void> {
  await temporary.store.targetGroups.update(estate.targetGroup.id, {
    sessionAccounts: [],
    interactiveServiceIds: held.interactive ? [estate.service.id] : [],
    mappingServiceIds: held.mapping ? [estate.service.id] : [],
  })
}

beforeEach(async () => {
  temporary = await temporaryStore()
  const { store } = temporary
  estate = await smallEstate(store)
  vault = await openVault(store, { file: `${temporary.path}.key` })
  const identities = new Identities(store.users, quickHasher(), new Lockout(), Date.now, vault)
  await identities.setPassword(estate.user.id, Secret.of('ops1 password'))
  const other = await store.users.create(newUser('ops2', { groupIds: [estate.userGroup.id] }))
  await identities.setPassword(other.id, Secret.of('ops2 password'))
  const recordings = new RecordingService({
    root: `${temporary.path}.recordings`,
    keys: await openRecordingKeys(store.settings, vault),
    recipients: [],
    brokerKey: true,
    minimumFree: 0,
  })
  await recordings.start()
  const audit = new AuditLog({ repository: store.audit, now: Date.now })
  // No watcher exists.
  const drawer = {
    state: async () => [],
    feed: () => undefined,
    listen: () => undefined,
    forget: () => undefined,
  }
  gate = new BrokerGate({ store, identities, vault, audit, recordings, drawer, now: Date.now })
  const invitations = new Invitations({
    stored: store.invitations,
    vault,
    runsElsewhere: () => false,
    audit,
    notify: () => {},
    grounds: groundsOn(store),
    watch: () => {},
    now: Date.now,
  })
  signIns = new SignIns({
    store,
    identities,
    audit,
    tickets: new Tickets(store.tickets, vault),
    invitations,
    grounds: groundsOn(store),
    running: () => [],
    factorAhead: async () => undefined,
    reasonAhead: async () => undefined,
    onWithdrawn: () => {},
    now: Date.now,
  })
  notices = []
  gate.onNotice((notice) => notices.push(notice))
})
afterEach(() => temporary.remove())

const signIn = (login: string, password = `${login.split(':')[0]} password`) =>
  gate.authenticate({ protocol: 'SSH', source: SOURCE, login, proof: { method: 'password', password } })

const answer = (login: string, challenge: string, answers: string[], source = SOURCE) =>
  gate.authenticate({
    protocol: 'SSH',
    source,
    login,
    proof: { method: 'keyboard-interactive', challenge, answers },
  })

function tokenOf(answered: AuthenticateAnswer): string {
  if (answered.result !== 'accepted') throw new Error(answered.result)
  return answered.identity.token
}

async function challenged(login: string) {
  const asked = await signIn(login)
  if (asked.result !== 'challenge') throw new Error(asked.result)
  return asked.challenge
}

const open = (identity: string, more: Partial<OpenRequest> = {}) =>
  gate.open({ identity, protocol: 'SSH', source: SOURCE, ...more })

async function opened(identity: string, more?: Partial<OpenRequest>): Promise<OpenSession> {
  const answered = await open(identity, more)
  if (answered.result !== 'opened') throw new Error(JSON.stringify(answered))
  return answered.session
}

const audited = async () => (await temporary.store.audit.range(0, 1000)).map(({ json }) => json).join('\n')

describe('account mapping', () => {
  test('the own name and password, and only at a target that is mapped', async () => {
    await hold({ mapping: true })
    const session = await opened(tokenOf(await signIn('ops1:srv1')))
    expect(session).toMatchObject({
      target: { canonical: 'ops1@srv1:ssh', login: 'ops1' },
      credentials: [{ type: 'password', password: 'ops1 password' }],
      question: { target: 'srv1:ssh', login: 'ops1' },
    })
    expect(await temporary.store.sessions.find(session.id)).toMatchObject({ account: 'ops1', domain: '' })
    expect(await audited()).not.toContain('ops1 password')
  })

  test('each identity has its own', async () => {
    await hold({ mapping: true })
    const [one, two] = [tokenOf(await signIn('ops1:srv1')), tokenOf(await signIn('ops2:srv1'))]
    expect((await opened(two)).credentials).toEqual([{ type: 'password', password: 'ops2 password' }])
    expect((await opened(one)).credentials).toEqual([{ type: 'password', password: 'ops1 password' }])
  })

  test('is wiped at leave', async () => {
    await hold({ mapping: true })
    const token = tokenOf(await signIn('ops1:srv1'))
    await gate.leave({ identity: token })
    await expect(open(token)).rejects.toThrow('no longer signed in')
    const proof = { method: 'password', password: 'ops1 password' } as const
    const request = { protocol: 'SSH', source: SOURCE, login: 'ops1:srv1', proof } as const
    const own = tokenOf(await signIns.authenticate(request))
    const { kept } = signIns.get(own, 'SSH')
    const { password } = kept
    expect(password?.revealText()).toBe('ops1 password')
    signIns.forget(own)
    expect(() => password?.reveal()).toThrow('wiped')
    expect(kept).toEqual({})
  })

  test('the password is not kept where no target is mapped: who chooses one later is asked', async () => {
    const token = tokenOf(await signIn('ops1'))
    await hold({ mapping: true })
    const target = (await gate.targets({ identity: token, protocol: 'SSH' })).targets[0]!.target
    expect(target).toBe('ops1@srv1:ssh')
    expect(await open(token, { target })).toEqual({
      result: 'logon_needed',
      question: { target: 'srv1:ssh', login: 'ops1' },
    })
  })

  test('a typed login does not replace the own name', async () => {
    await hold({ mapping: true })
    const token = tokenOf(await signIn('ops1'))
    const session = await opened(token, {
      target: 'ops1@srv1:ssh',
      logon: { login: 'root', password: 'typed' },
    })
    expect(session.target.login).toBe('ops1')
    expect(session.credentials).toEqual([{ type: 'password', password: 'typed' }])
  })
})

describe('interactive login', () => {
  beforeEach(() => hold({ interactive: true }))

  test('is asked for at the sign-in, and the answers open the session once', async () => {
    const challenge = await challenged('ops1:srv1')
    expect(challenge.prompts).toEqual([
      { text: 'Login at srv1:ssh: ', echo: true },
      { text: 'Password at srv1:ssh: ', echo: false },
    ])
    const token = tokenOf(await answer('ops1:srv1', challenge.id, ['adm', 'typed password']))
    expect(await opened(token)).toMatchObject({
      target: { canonical: 'adm@srv1:ssh', login: 'adm' },
      credentials: [{ type: 'password', password: 'typed password' }],
      question: { target: 'srv1:ssh' },
    })
    expect(await open(token)).toMatchObject({ result: 'logon_needed' })
    expect(await audited()).not.toMatch(/typed password|ops1 password/)
  })

  test('the login string names the login', async () => {
    const challenge = await challenged('ops1:adm@srv1')
    expect(challenge.prompts).toEqual([{ text: 'Password of adm at srv1:ssh: ', echo: false }])
    const token = tokenOf(await answer('ops1:adm@srv1', challenge.id, ['typed']))
    expect((await opened(token)).target.login).toBe('adm')
  })

  test('a challenge is answered once, by whom it was put to, under the same login string', async () => {
    const { id } = await challenged('ops1:srv1')
    expect(await answer('ops2:srv1', id, ['adm', 'x'])).toEqual({ result: 'rejected' })
    expect(await answer('ops1:srv1', id, ['adm', 'x'])).toEqual({ result: 'rejected' })
    const elsewhere = await challenged('ops1:srv1')
    expect(await answer('ops1:srv1', elsewhere.id, ['adm', 'x'], { ...SOURCE, port: 1 })).toEqual({
      result: 'rejected',
    })
    const left = await challenged('ops1:srv1')
    await gate.leave({ identity: left.id })
    expect(await answer('ops1:srv1', left.id, ['adm', 'x'])).toEqual({ result: 'rejected' })
  })

  test.each([
    [['', 'x'], 'the login must not be empty'],
    [['ro\u001b[2Jot', 'x'], 'control or invisible characters'],
    [['x'.repeat(129), 'x'], 'longer than 128 bytes'],
    [['root', ''], 'the password must not be empty'],
    [['root', 'x'.repeat(1025)], 'longer than 1024 bytes'],
  ])('the answers %j are asked again', async (answers, flaw) => {
    const { id } = await challenged('ops1:srv1')
    const again = await answer('ops1:srv1', id, answers)
    expect(again).toMatchObject({
      result: 'challenge',
      challenge: { instructions: expect.stringContaining(flaw) },
    })
    const token = tokenOf(await signIn('ops1'))
    const [login = '', password = ''] = answers
    expect(await open(token, { target: '@srv1:ssh', logon: { login, password } })).toMatchObject({
      result: 'logon_needed',
      question: { flaw: expect.stringContaining(flaw) },
    })
  })

  test('nobody is asked who may not open it, and the answer is that for no such target', async () => {
    await temporary.store.users.update(estate.user.id, { groupIds: [] })
    const ask = async (device: string) => {
      const refused = await open(tokenOf(await signIn(`ops1:root@${device}`)))
      return refused.result === 'denied' ? refused.message.replaceAll(device, 'X') : refused.result
    }
    expect(await ask('srv1')).toBe(await ask('srv9'))
    const wrong = await signIn('ops1:srv1', 'wrong')
    expect(wrong).toEqual({ result: 'rejected' })
  })

  test('what was withdrawn while it was asked is denied', async () => {
    const token = tokenOf(await signIn('ops1'))
    expect(await open(token, { target: '@srv1:ssh' })).toMatchObject({ result: 'logon_needed' })
    await hold({ mapping: true })
    const logon = { login: 'root', password: 'x' }
    expect(await open(token, { target: '@srv1:ssh', logon })).toMatchObject({ result: 'denied' })
  })

  test('a connection policy that does not name the method opens no such target', async () => {
    const { store } = temporary
    const policy = (await store.connectionPolicies.find('SSH'))!
    const allow = (...authenticationMethods: AuthenticationMethod[]) =>
      store.connectionPolicies.update(policy.id, { ssh: { ...policy.ssh, authenticationMethods } })
    const token = tokenOf(await signIn('ops1'))
    const logon = { login: 'root', password: 'x' }
    await allow('PUBKEY_VAULT', 'PASSWORD_VAULT', 'PASSWORD_MAPPING')
    expect(await open(token, { target: '@srv1:ssh', logon })).toMatchObject({ result: 'denied' })
    await allow('PASSWORD_VAULT', 'PASSWORD_INTERACTIVE')
    const session = await opened(token, { target: '@srv1:ssh', logon })
    expect(session.options.authenticationMethods).toEqual(['PASSWORD_INTERACTIVE'])
  })

  test('a session that runs ends with its right, not with that of the other kind', async () => {
    const token = tokenOf(await signIn('ops1'))
    const logon = { login: 'ops1', password: 'x' }
    const { id } = await opened(token, { target: '@srv1:ssh', logon })
    await hold({ interactive: true, mapping: true })
    await gate.review()
    expect(notices).toEqual([])
    await hold({ mapping: true })
    await gate.review()
    expect(notices).toEqual([
      { type: 'stop', session: id, reason: 'the authorization for this target is gone' },
    ])
  })
})

describe('where a terminal is all that there is', () => {
  beforeEach(async () => {
    const { store } = temporary
    const connectionPolicyId = FACTORY_CONNECTION_POLICIES.TELNET
    await store.services.update(estate.service.id, { protocol: 'TELNET', connectionPolicyId })
    await store.authorizations.update(estate.authorization.id, { subprotocols: [] })
  })

  test('a stored account has its passwords typed, and no key leaves the vault', async () => {
    const { private: privateKey } = newSshKey('ed25519')
    const [password, enable] = [Secret.of('one'), Secret.of('two')]
    await vault.setCredentials(estate.account.id, [
      { type: 'ssh_key', privateKey: Secret.of(privateKey) },
      { type: 'enable', password: enable },
      { type: 'password', password },
    ])
    const session = await opened(tokenOf(await signIn('ops1:root@srv1')))
    expect(session.credentials).toEqual([
      { type: 'enable', password: 'two' },
      { type: 'password', password: 'one' },
    ])
    expect(session).toMatchObject({ rights: ['TELNET'], target: { protocol: 'TELNET', login: 'root' } })
    expect(session.isPersonal).toBeUndefined()
  })

  test('SSH has no use for the second password', async () => {
    const { store } = temporary
    const connectionPolicyId = FACTORY_CONNECTION_POLICIES.SSH
    await store.services.update(estate.service.id, { protocol: 'SSH', connectionPolicyId })
    await vault.setCredentials(estate.account.id, [
      { type: 'enable', password: Secret.of('two') },
      { type: 'password', password: Secret.of('one') },
    ])
    const { id } = await opened(tokenOf(await signIn('ops1:root@srv1')))
    expect(await gate.hostKey({ session: id, key: hostKey('srv1') })).toEqual({
      result: 'accepted',
      credentials: [{ type: 'password', password: 'one' }],
    })
  })

  test('a target may ask for no password', async () => {
    expect((await opened(tokenOf(await signIn('ops1:root@srv1')))).credentials).toEqual([])
  })

  test.each([
    ['ops1:srv1', ''],
    ['ops1:root@srv1', 'root'],
  ])('interactive login is asked for by the target: %s', async (login, name) => {
    await hold({ interactive: true })
    const session = await opened(tokenOf(await signIn(login)))
    expect(session).toMatchObject({ isPersonal: true, credentials: [], target: { login: name } })
  })

  test('account mapping types the own name and password', async () => {
    await hold({ mapping: true })
    const session = await opened(tokenOf(await signIn('ops1:srv1')))
    expect(session).toMatchObject({
      credentials: [{ type: 'password', password: 'ops1 password' }],
      target: { login: 'ops1' },
    })
    expect(session.isPersonal).toBeUndefined()
  })
})

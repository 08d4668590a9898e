/** Persons of domains that sign in by the public keys of their directory. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Authorities } from '../../src/identity/authorities.ts'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import { LOCKOUT_LIMITS, Lockout } from '../../src/identity/lockout.ts'
import type { PersonLook, SignInMethod } from '../../src/identity/methods/method.ts'
import { PasswordHasher } from '../../src/identity/password.ts'
import { parseAuthorizedKey } from '../../src/identity/public-key.ts'
import type { Outcome } from '../../src/identity/sign-in.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../src/vault/seal.ts'
import { newUser } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { forger } from './certificates.ts'
import { opensshKey, signedData, sshString } from './keys.ts'

const TYPE = 'ssh-ed25519'
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const key = opensshKey('ed25519')
const otherKey = opensshKey('ed25519')

let temp: TemporaryStore
let identities: Identities
let looks: number
let lookMs: number
let found: PersonLook
const alice: PersonLook = {
  result: 'present',
  person: { userName: 'alice', stableId: '1', groups: ['staff'], publicKeys: [key.line] },
}

const method: SignInMethod = {
  prove: async ({ userName }, password) =>
    password.revealText() === '123'
      ? { result: 'accepted', person: { userName, groups: [] } }
      : { result: 'rejected', reason: 'wrong_password' },
  answer: async () => ({ result: 'unavailable', reason: 'no rounds' }),
  look: async () => {
    looks++
    await sleep(lookMs)
    return found
  },
  test: async () => [],
  close: async () => undefined,
}

beforeEach(async () => {
  temp = await temporaryStore()
  looks = 0
  lookMs = 0
  found = alice
  const { store } = temp
  identities = new Identities(
    store.users,
    new PasswordHasher({ memory: 256, passes: 1 }),
    new Lockout(),
    Date.now,
    {
      seal: (place, secret) => seal(dataKey, place, secret),
      open: (place, sealed) => open(dataKey, place, sealed),
    },
    new External({ store, registry: { of: async () => method } }),
  )
})
afterEach(() => temp.remove())

async function domain(attributes: { publicKey?: string }, isSecond = false): Promise<string> {
  const { store } = temp
  const servers = [{ host: '192.0.2.9' }]
  const auth = await store.externalAuths.create({
    authenticationName: 'directory',
    description: '',
    type: 'LDAP',
    servers,
    timeoutMs: 1000,
    options: {},
  } as never)
  const { id } = await store.authDomains.create({
    domainName: 'CORP',
    description: '',
    type: 'LDAP',
    isDefault: false,
    externalAuthIds: [auth.id],
    secondaryAuthIds: isSecond ? [auth.id] : [],
    attributes,
    defaultLanguage: 'en',
  })
  const group = { groupName: 'staff', description: '', userIds: [], timeframeIds: [] }
  const { id: userGroupId } = await store.userGroups.create(group as never)
  await store.authDomainMappings.create({
    authDomainId: id,
    userGroupId,
    externalGroup: 'staff',
    profile: 'user',
  })
  return id
}

const asking = (user: string) => ({ user, login: `${user}+root@srv1`, source: '192.0.2.1', owner: 'here' })
const query = (user: string, blob: Uint8Array = key.blob): Promise<Outcome> =>
  identities.authenticate({ ...asking(user), proof: { method: 'publickey', key: blob } })
const signIn = (user: string, pair = key): Promise<Outcome> => {
  const data = signedData(`${user}+root@srv1`, TYPE, pair.blob)
  const signed = { data, signature: pair.sign(data, TYPE) }
  return identities.authenticate({
    ...asking(user),
    proof: { method: 'publickey', key: pair.blob, signed },
  })
}
const rejected = (reason: string) => expect.objectContaining({ result: 'rejected', reason })

test('one of its keys signs in, and the directory is asked once for several queries', async () => {
  await domain({ publicKey: 'sshPublicKey' })
  expect(await query('alice@CORP', otherKey.blob)).toEqual(rejected('unknown_key'))
  expect(await query('alice@CORP')).toEqual({ result: 'key_acceptable' })
  expect(await temp.store.users.find('alice@CORP')).toBeUndefined()
  expect(await signIn('alice@CORP')).toMatchObject({ result: 'accepted', user: { userName: 'alice@CORP' } })
  expect((await temp.store.users.find('alice@CORP'))?.sshPublicKeys).toEqual([key.line])
  expect(await signIn('alice@CORP', otherKey)).toEqual(rejected('unknown_key'))
  expect(looks).toBe(1)
})

test('a person without a mapping, or that is gone, is rejected', async () => {
  await domain({ publicKey: 'sshPublicKey' })
  found = { result: 'present', person: { userName: 'bob', groups: ['guests'], publicKeys: [key.line] } }
  expect(await signIn('bob@CORP')).toEqual(rejected('unmapped'))
  found = { result: 'absent', reason: 'account_disabled' }
  expect(await signIn('alice@CORP')).toEqual(rejected('unknown_user'))
})

test('a key that no directory can judge counts as no failure', async () => {
  await domain({ publicKey: 'sshPublicKey' })
  found = { result: 'unavailable', reason: 'no route' }
  for (let n = 0; n <= LOCKOUT_LIMITS.pairFailures; n++)
    expect(await signIn('alice@CORP')).toEqual({
      result: 'unavailable',
      server: 'directory',
      reason: 'no route',
      isHidden: false,
    })
  expect(await query('alice@CORP')).toEqual({ result: 'rejected', reason: 'unknown_user', locks: false })
  found = alice
  expect(await signIn('alice@CORP')).toMatchObject({ result: 'accepted' })
})

test('a key of a local user is refused no sooner than one of a person that nobody knows', async () => {
  const corp = await domain({ publicKey: 'sshPublicKey' })
  await temp.store.authDomains.update(corp, { isDefault: true })
  await temp.store.users.create(newUser('olga'))
  lookMs = 60
  expect(await query('alice')).toEqual({ result: 'key_acceptable' })
  lookMs = 0
  for (const name of ['olga', 'nadia']) {
    found = { result: 'absent', reason: 'unknown_user' }
    const begin = performance.now()
    expect(await query(name)).toMatchObject({ result: 'rejected' })
    // A timer may fire a fraction early.
    expect([name, performance.now() - begin > 55]).toEqual([name, true])
  }
  expect(looks).toBe(2)
})

test('a domain without an attribute of keys is not asked', async () => {
  await domain({})
  expect(await signIn('alice@CORP')).toEqual(rejected('unknown_user'))
  expect(looks).toBe(0)
})

test('a second factor of the domain is asked after the key', async () => {
  await domain({ publicKey: 'sshPublicKey' }, true)
  for (const [code, result] of [
    ['456', 'rejected'],
    ['123', 'accepted'],
  ] as const) {
    const outcome = await signIn('alice@CORP')
    if (outcome.result !== 'challenge') throw new Error(outcome.result)
    const { outcome: end } = await identities.answer(outcome.challenge, 'here', [Secret.of(code)])
    expect(end.result).toBe(result)
  }
})

test('no server is asked about a name that is locked', async () => {
  await domain({ publicKey: 'sshPublicKey' })
  const forged = { ...key, sign: otherKey.sign }
  for (let n = 0; n < LOCKOUT_LIMITS.pairFailures; n++)
    expect(await signIn('alice@CORP', forged)).toEqual(rejected('bad_signature'))
  looks = 0
  found = { result: 'absent', reason: 'unknown_user' }
  expect(await query('alice@CORP')).toEqual(rejected('locked'))
  expect(await signIn('alice@CORP')).toEqual(rejected('locked'))
  expect(looks).toBe(0)
})

test('a certificate of an authority signs in the person that it names, and no other one', async () => {
  await domain({ publicKey: 'sshPublicKey' })
  const smith = forger()
  identities.authorities = new Authorities([parseAuthorizedKey(smith.line)])
  const by = (principal: string) =>
    query('alice@CORP', smith.certificate({ principals: sshString(principal) }))
  expect(await by('alice@CORP')).toEqual({ result: 'key_acceptable' })
  expect(await by('alice')).toMatchObject({ result: 'rejected' })
  expect(await by('bob@CORP')).toMatchObject({ result: 'rejected' })
})

/** Sign-ins while servers are away, by what they had accepted a while ago. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import type { HashSeal } from '../../src/identity/hashes.ts'
import { Lockout } from '../../src/identity/lockout.ts'
import type { MethodAnswer, SignInMethod } from '../../src/identity/methods/method.ts'
import { MAX_OFFLINE_TRIES, Offline } from '../../src/identity/offline.ts'
import type { AuthDomain, ExternalAuth } from '../../src/model/external-auths.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../src/vault/seal.ts'
import { newAuthDomain, newExternalAuth, newUser } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'
import { quickHasher } from './quick-hasher.ts'

const MINUTE = 60_000
const RIGHT = 'Pass-of-alice'
const AWAY: MethodAnswer = { result: 'unavailable', reason: 'no route' }
const WRONG: MethodAnswer = { result: 'rejected', reason: 'wrong_password' }
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const SEAL: HashSeal = {
  seal: (place, secret) => seal(dataKey, place, secret),
  open: (place, sealed) => open(dataKey, place, sealed),
}

let temp: TemporaryStore
let identities: Identities
let auth: ExternalAuth
let domain: AuthDomain
let now: number
let prove: (password: string) => MethodAnswer
let verified: number
const present = (password: string): MethodAnswer =>
  password === RIGHT ? { result: 'accepted', person: { userName: 'alice', groups: ['ops'] } } : WRONG

beforeEach(async () => {
  temp = await temporaryStore()
  const { store } = temp
  now = 1_000_000_000
  verified = 0
  prove = present
  const method: SignInMethod = {
    prove: async (_attempt, password) => prove(password.revealText()),
    answer: async () => ({ result: 'accepted', person: { userName: 'alice', groups: ['ops'] } }),
    test: async () => [],
    close: async () => undefined,
  }
  const hasher = quickHasher()
  const passwords = {
    hash: (password: Secret) => hasher.hash(password),
    verify: (...asked: Parameters<typeof hasher.verify>) => {
      verified++
      return hasher.verify(...asked)
    },
  }
  const offline = new Offline({ store, vault: SEAL, passwords, now: () => now })
  const external = new External({ store, registry: { of: async () => method }, offline })
  identities = new Identities(store.users, hasher, new Lockout(), () => now, SEAL, external)
  auth = await store.externalAuths.create(newExternalAuth('directory', { offlineS: 900 }))
  domain = await store.authDomains.create(newAuthDomain('corp', { externalAuthIds: [auth.id] }))
  const group = await store.userGroups.create({ groupName: 'staff', description: '', userIds: [] })
  const mapping = { authDomainId: domain.id, userGroupId: group.id, externalGroup: 'ops', profile: 'user' }
  await store.authDomainMappings.create(mapping)
})
afterEach(() => temp.remove())

const outcome = (password = RIGHT, user = 'alice@corp') =>
  identities.authenticate({
    user,
    login: user,
    source: '192.0.2.1',
    owner: 'here',
    proof: { method: 'password', password },
  })
const signIn = async (password?: string, user?: string) => (await outcome(password, user)).result
const away = () => {
  prove = () => AWAY
}

test('counts for as long as it says, with the groups that were seen last, and says that it was offline', async () => {
  expect(await signIn()).toBe('accepted')
  away()
  now += 14 * MINUTE
  const found = await outcome()
  expect(found).toMatchObject({ result: 'accepted', isOffline: true, by: ['directory'] })
  expect(found.result === 'accepted' && found.user.groupIds).toHaveLength(1)
  now += MINUTE
  expect(await signIn()).toBe('unavailable')
  // A clock that was set back makes nothing good again.
  now -= 16 * MINUTE
  expect(await signIn()).toBe('unavailable')
})

test('is not kept unless the server says so, nor for one whose server asks for more', async () => {
  prove = () => ({ result: 'challenge', message: '', prompts: [], state: { close: () => undefined } })
  const asked = await outcome()
  if (asked.result !== 'challenge') throw new Error(asked.result)
  await identities.answer(asked.challenge, 'here', [])
  away()
  expect(await signIn()).toBe('unavailable')
  await temp.store.externalAuths.update(auth.id, { offlineS: 0 })
  prove = present
  await signIn()
  expect((await temp.sql('select * from offline_proofs')).length).toBe(0)
})

test('a wrong password, an unknown name and one never seen get one answer, by as many hashes', async () => {
  await signIn()
  away()
  const counts: number[] = []
  for (const [password, name] of [
    ['wrong', 'alice@corp'],
    [RIGHT, 'nobody@corp'],
  ] as const) {
    verified = 0
    expect(await signIn(password, name)).toBe('unavailable')
    counts.push(verified)
  }
  expect(counts).toEqual([1, 1])
})

test('ends by a few wrong passwords, which are counted before they are judged', async () => {
  await signIn()
  away()
  const guesses = Array.from({ length: MAX_OFFLINE_TRIES }, (_, at) => signIn(`wrong ${at}`))
  expect(new Set(await Promise.all(guesses))).toEqual(new Set(['unavailable']))
  expect(await signIn()).toBe('unavailable')
})

test('ends by a refusal of the server, another way to it, and a look that finds the person gone', async () => {
  const { store } = temp
  const ends: [string, () => Promise<unknown>][] = [
    ['a refusal', () => signIn('wrong')],
    ['another way', () => store.externalAuths.update(auth.id, { servers: [{ host: '192.0.2.77' }] })],
    ['a look', async () => store.persons.suspend((await store.users.find('alice@corp'))!.id)],
    ['no mapping', async () => store.persons.signedIn(domain.id, { userName: 'alice', groups: [] })],
  ]
  for (const [name, end] of ends) {
    prove = present
    expect([name, await signIn()]).toEqual([name, 'accepted'])
    await end()
    away()
    expect([name, await signIn()]).toEqual([name, 'unavailable'])
  }
})

test('leaves out no second factor of a server that is away', async () => {
  const second = await temp.store.externalAuths.create(newExternalAuth('codes'))
  await temp.store.authDomains.update(domain.id, { secondaryAuthIds: [second.id] })
  const rounds = async () => {
    const asked = await outcome()
    if (asked.result !== 'challenge') throw new Error(asked.result)
    return (await identities.answer(asked.challenge, 'here', [Secret.of(RIGHT)])).outcome.result
  }
  expect(await rounds()).toBe('accepted')
  away()
  expect(await rounds()).toBe('unavailable')
})

test('counts for a local user that names the server, and not after a new password here', async () => {
  const user = await temp.store.users.create(newUser('fritz', { userAuths: ['directory'] as never }))
  expect(await signIn(RIGHT, 'fritz')).toBe('accepted')
  away()
  expect(await signIn(RIGHT, 'fritz')).toBe('accepted')
  await identities.setPassword(user.id, Secret.of('a new pass phrase'))
  expect(await signIn(RIGHT, 'fritz')).toBe('unavailable')
})

test('is stored sealed for its user and server, without the password', async () => {
  await signIn()
  const [row] = await temp.sql('select * from offline_proofs')
  expect(Buffer.from(row!['sealed'] as Uint8Array).toString('latin1')).not.toMatch(/argon2|Pass-of/)
})

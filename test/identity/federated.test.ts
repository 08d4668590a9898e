/** The end that sign-ins at providers have in common, and what rests on their sessions. */
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { passwordProof } from '../../src/identity/basis.ts'
import { Identities } from '../../src/identity/chain.ts'
import { External } from '../../src/identity/external.ts'
import { Federated, type FederatedOutcome, type ProvedPerson } from '../../src/identity/federated.ts'
import type { HashSeal } from '../../src/identity/hashes.ts'
import { LOCKOUT_LIMITS, Lockout } from '../../src/identity/lockout.ts'
import { MAX_OF_USER, ProviderSessions } from '../../src/identity/provider-sessions.ts'
import type { Proved } from '../../src/identity/sign-in.ts'
import type { Step } from '../../src/identity/steps.ts'
import type { AuthDomain, ExternalAuth } from '../../src/model/external-auths.ts'
import { Secret } from '../../src/model/secret.ts'
import { type DataKey, KEY_BYTES, KEY_ID_BYTES, open, seal } from '../../src/vault/seal.ts'
import { groundsOn } from '../gate/grounds.ts'
import { newAuthDomain, newExternalAuth } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const CLIENT = { source: '192.0.2.1', owner: 'HTTPS 192.0.2.1' }
const dataKey: DataKey = { id: randomBytes(KEY_ID_BYTES), key: Secret.of(randomBytes(KEY_BYTES)) }
const SEAL: HashSeal = {
  seal: (place, secret) => seal(dataKey, place, secret),
  open: (place, sealed) => open(dataKey, place, sealed),
}
const ENDS = 2_000_000

let temp: TemporaryStore
let federated: Federated
let sessions: ProviderSessions
let domain: AuthDomain
let auth: ExternalAuth
let now: number
let factor: (proved: Proved) => Promise<Step<Proved>>

beforeEach(async () => {
  temp = await temporaryStore()
  const { store } = temp
  now = 1_000_000
  factor = async (value) => ({ result: 'accepted', value })
  const external = new External({
    store,
    registry: {
      of: async () => {
        throw new Error('no server is asked')
      },
    },
  })
  const identities = new Identities(store.users, {} as never, new Lockout(), () => now, SEAL, external, {
    after: (proved) => factor(proved),
    ask: (proved) => factor(proved),
    covered: async () => undefined,
  })
  sessions = new ProviderSessions({ store, vault: SEAL, now: () => now })
  federated = new Federated({ external, identities, sessions })
  auth = await store.externalAuths.create(newExternalAuth('login'))
  domain = await store.authDomains.create(newAuthDomain('corp', { externalAuthIds: [auth.id] }))
  const group = await store.userGroups.create({ groupName: 'staff', description: '', userIds: [] })
  const mapping = { authDomainId: domain.id, userGroupId: group.id, externalGroup: 'ops', profile: 'user' }
  await store.authDomainMappings.create(mapping)
})
afterEach(() => temp.remove())

const proved = (more: Partial<ProvedPerson['person']> = {}, sid = 'sid-1'): ProvedPerson => ({
  domain,
  auth,
  person: { stableId: 'https://login.lab u1', userName: 'alice', groups: ['ops'], ...more },
  session: { subject: 'u1', sid, ends: ENDS, tokens: { refreshToken: 'refresh-1', idToken: 'id-1' } },
})
function accepted({ outcome }: FederatedOutcome): Proved {
  if (outcome.result !== 'accepted') throw new Error(JSON.stringify(outcome))
  return outcome
}
const loggedOut = async (named: { subject?: string; sid?: string }, endsAll: boolean, id = auth.id) => {
  const users: string[] = []
  await sessions.loggedOut(id, named, endsAll, async (ids) => void users.push(...ids))
  return users
}
const signIn = async (person = proved()) => accepted(await federated.signIn(person, CLIENT))

test('a proved person is a user of the domain, with a session at the provider', async () => {
  const { user, by, providerSession } = await signIn()
  expect([user.userName, by]).toEqual(['alice@corp', ['login']])
  const session = (await temp.store.providerSessions.find(providerSession!))!
  expect(session).toMatchObject({ userId: user.id, externalAuthId: auth.id, subject: 'u1', sid: 'sid-1' })
  expect(sessions.tokensOf(session)).toEqual({ refreshToken: 'refresh-1', idToken: 'id-1' })
  expect(Buffer.from(session.sealed!).includes('refresh-1')).toBe(false)
})

test('tokens are opened for their own session only', async () => {
  const one = await temp.store.providerSessions.find((await signIn()).providerSession!)
  const two = await temp.store.providerSessions.find((await signIn()).providerSession!)
  expect(() => sessions.tokensOf({ ...one!, sealed: two!.sealed! })).toThrow()
})

test.each([
  ['whom no mapping knows', { groups: [] }, 'unmapped'],
  ['with blanks around the name', { userName: ' alice' }, 'wrong_ticket'],
])('a person %s is refused, which counts, and no session begins', async (_what, more, reason) => {
  const outcome = async () => (await federated.signIn(proved(more), CLIENT)).outcome
  for (let count = 1; count < LOCKOUT_LIMITS.pairFailures; count++)
    expect(await outcome()).toMatchObject({ reason, locks: false })
  expect([await outcome(), await outcome()]).toMatchObject([{ reason, locks: true }, { reason: 'locked' }])
  expect(await temp.store.providerSessions.list()).toEqual([])
})

test('what a provider has not proved counts for the address; what it could not judge does not', async () => {
  const away = await federated.unjudged({ domain, auth }, CLIENT, 'no\nroute')
  expect(away).toMatchObject({ outcome: { result: 'unavailable', server: 'login' }, detail: 'no route' })
  const outcome = async () => (await federated.refused(CLIENT, 'a code')).outcome
  for (let count = 1; count < LOCKOUT_LIMITS.pairFailures; count++) await outcome()
  expect([await outcome(), await outcome()]).toMatchObject([{ locks: true }, { reason: 'locked' }])
})

test('servers that were taken from the domain meanwhile prove nobody', async () => {
  await temp.store.authDomains.update(domain.id, { externalAuthIds: [] })
  expect((await federated.signIn(proved(), CLIENT)).outcome).toMatchObject({ reason: 'method_not_allowed' })
})

test('the second factor is asked after the provider, and the session goes with its result', async () => {
  const round = { message: 'Code', prompts: [], next: async () => ({ result: 'rejected' }), close() {} }
  factor = async () => ({ result: 'challenge', round }) as never
  expect((await federated.signIn(proved(), CLIENT)).outcome).toMatchObject({ result: 'challenge' })
})

test('a person has a limited number of sessions: a further one ends the oldest', async () => {
  const { providerSession: first } = await signIn()
  for (let count = 0; count < MAX_OF_USER; count++) await signIn()
  expect(await temp.store.providerSessions.find(first!)).toBeUndefined()
  expect(await temp.store.providerSessions.list()).toHaveLength(MAX_OF_USER)
})

test('a logout by sid ends that session, one by subject all of the person, one of another provider none', async () => {
  const [one, two] = [await signIn(), await signIn(proved({}, 'sid-2'))]
  const bob = await signIn({
    ...proved({ stableId: 'https://login.lab u2', userName: 'bob' }),
    session: { subject: 'u2', sid: 'sid-1', ends: ENDS },
  })
  const left = async () => (await temp.store.providerSessions.list()).map(({ id }) => id).sort()
  const other = await temp.store.externalAuths.create(newExternalAuth('other'))
  expect(await loggedOut({ subject: 'u1' }, true, other.id)).toEqual([])
  expect(await loggedOut({}, true)).toEqual([])
  expect(await loggedOut({ subject: 'u1', sid: 'sid-2' }, true)).toEqual([two.user.id])
  expect(await left()).toEqual([one.providerSession, bob.providerSession].sort())
  expect(await loggedOut({ subject: 'u1' }, true)).toEqual([one.user.id])
  expect(await left()).toEqual([bob.providerSession])
})

test('what rests on a session ends with it, or at its time', async () => {
  const { user, providerSession } = await signIn()
  const address = CLIENT.source
  const bounds = { ...(providerSession && { providerSession }) }
  const basis = { userId: user.id, address, proof: passwordProof(user, ['login'], bounds) }
  const flaw = () => groundsOn(temp.store, () => now)().flawOf(basis, address)
  expect(await flaw()).toBeUndefined()
  now = ENDS
  expect(await flaw()).toBe('the sign-in at the provider has ended')
  now = ENDS - 1
  await loggedOut({ subject: 'u1' }, false)
  expect(await flaw()).toBeUndefined()
  expect(sessions.tokensOf((await temp.store.providerSessions.find(providerSession!))!)).toEqual({})
  await loggedOut({ subject: 'u1' }, true)
  expect(await flaw()).toBe('the provider has ended the sign-in')
})

test('what rests on an access token ends with it', async () => {
  const { user } = await signIn()
  const address = CLIENT.source
  const basis = { userId: user.id, address, proof: passwordProof(user, ['login'], { ends: ENDS }) }
  const flaw = () => groundsOn(temp.store, () => now)().flawOf(basis, address)
  now = ENDS - 1
  expect(await flaw()).toBeUndefined()
  now = ENDS
  expect(await flaw()).toBe('the access token of the sign-in has ended')
})

test('sign-ins by cookie end with the session at the provider', async () => {
  const { user, providerSession } = await signIn()
  const begin = async (hash: number, more: object) => {
    const stored = { userId: user.id, secretRevision: 0, begin: now, lastUse: now, ...more }
    await temp.store.signIns.begin(
      Uint8Array.of(hash),
      stored,
      { begin: 0, lastUse: 0 },
      { ofUser: 9, all: 9 },
    )
  }
  await begin(1, { providerSession })
  await begin(2, {})
  expect(await temp.store.signIns.find(Uint8Array.of(1))).toMatchObject({ providerSession })
  expect(await temp.store.providerSessions.isSignedIn(providerSession!)).toBe(true)
  await loggedOut({ sid: 'sid-1' }, false)
  expect(await temp.store.signIns.find(Uint8Array.of(1))).toBeUndefined()
  expect(await temp.store.signIns.find(Uint8Array.of(2))).toBeDefined()
  expect(await temp.store.providerSessions.isSignedIn(providerSession!)).toBe(false)
})

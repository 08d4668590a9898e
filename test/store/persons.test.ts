/** Persons of authentication domains: which user they are, what mappings give them, and what they lose. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { AuthDomain } from '../../src/model/external-auths.ts'
import type { ProvedPerson, Store } from '../../src/store/store.ts'
import { newAuthDomain, newExternalAuth, newUser } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
let store: Store
let domain: AuthDomain
let groups: Record<'ops' | 'dba' | 'all', string>
beforeEach(async () => {
  temp = await temporaryStore()
  store = temp.store
  const auth = await store.externalAuths.create(newExternalAuth('directory'))
  domain = await store.authDomains.create(
    newAuthDomain('corp', { externalAuthIds: [auth.id], isDefault: true }),
  )
  const made = async (groupName: string) =>
    (await store.userGroups.create({ groupName, description: '', userIds: [] })).id
  groups = { ops: await made('ops'), dba: await made('dba'), all: await made('all') }
})
afterEach(() => temp.remove())

const map = (externalGroup: string, group: keyof typeof groups, profile = 'user') =>
  store.authDomainMappings.create({
    authDomainId: domain.id,
    userGroupId: groups[group],
    externalGroup,
    profile,
  })
const ann: ProvedPerson = {
  userName: 'ann',
  stableId: 'id-1',
  groups: ['CN=Admins, DC=lab'],
  displayName: 'Ann',
}
const signIn = (person: Partial<ProvedPerson> = {}) =>
  store.persons.signedIn(domain.id, { ...ann, ...person })

test('has the groups of all mappings that match, and the profile of the oldest', async () => {
  await map('cn=admins,dc=lab', 'ops', 'operator')
  await map('CN=admins,DC=lab', 'dba', 'auditor')
  await map('*', 'all', 'product_administrator')
  expect(await signIn()).toMatchObject({
    userName: 'ann@corp',
    displayName: 'Ann',
    profile: 'operator',
    groupIds: [groups.ops, groups.dba].sort(),
    userAuths: [],
    authDomainId: domain.id,
  })
  expect(await signIn({ userName: 'ben', stableId: 'id-2', groups: [] })).toMatchObject({
    profile: 'product_administrator',
    groupIds: [groups.all],
  })
})

test('is nobody without a mapping that matches; one that was known is forgotten', async () => {
  expect(await signIn()).toBeUndefined()
  await map('cn=admins,dc=lab', 'ops')
  const known = await signIn()
  expect(known).toBeDefined()
  expect(await signIn({ groups: ['admins', 'cn=admins'] })).toBeUndefined()
  expect(await store.users.find(known!.id)).toBeUndefined()
})

test('is not among the local users, who have names of their own', async () => {
  await map('*', 'all')
  const local = await store.users.create(newUser('ann'))
  const person = await signIn()
  expect(person?.id).not.toBe(local.id)
  expect((await store.users.list()).items.map(({ userName }) => userName)).toEqual(['ann'])
  expect((await store.persons.list(undefined, domain.id)).items.map(({ id }) => id)).toEqual([person?.id])
  expect(await store.persons.remove(local.id)).toBe(false)
  expect(await store.persons.remove(person!.id)).toBe(true)
})

test.each(['ann@corp', 'ANN@CORP', 'аnn@corp'])('a local user with the name %s keeps it', async (name) => {
  await map('*', 'all')
  const local = await store.users.create(newUser(name))
  expect(await signIn()).toBeUndefined()
  expect(await store.users.find(local.id)).toEqual(local)
})

test.each(['', 'a\\b', 'a\u202eb', 'x'.repeat(130)])(
  'a name that no user can have is refused: %j',
  async (userName) => {
    await map('*', 'all')
    expect(await signIn({ userName })).toBeUndefined()
  },
)

test('writes nothing when nothing has changed', async () => {
  await map('*', 'all')
  await signIn()
  const { last } = await store.changes.kept()
  await signIn()
  expect((await store.changes.kept()).last).toBe(last)
  await signIn({ displayName: 'Ann Ely' })
  expect((await store.changes.kept()).last).toBeGreaterThan(last)
})

test('keeps their id by a new name, and does not hand the old one on', async () => {
  await map('*', 'all')
  const first = await signIn()
  const renamed = await signIn({ userName: 'anna' })
  expect(renamed).toMatchObject({ id: first!.id, userName: 'anna@corp' })
  const other = await signIn({ stableId: 'id-9' })
  expect(other!.id).not.toBe(first!.id)
  const taken = await signIn({ userName: 'anna', stableId: 'id-9' })
  expect(taken!.id).toBe(other!.id)
  expect(await store.users.find(first!.id)).toBeUndefined()
})

test('without a stable id goes by the name', async () => {
  await map('*', 'all')
  const plain = { userName: 'bob', groups: [] }
  const first = await store.persons.signedIn(domain.id, plain)
  expect((await store.persons.signedIn(domain.id, { ...plain, userName: 'BOB' }))?.id).toBe(first!.id)
  const other = { ...plain, userName: 'strauß' }
  const { id } = (await store.persons.signedIn(domain.id, other))!
  // It may be another person's at the server.
  expect(await store.persons.signedIn(domain.id, { ...plain, userName: 'strauss' })).toBeUndefined()
  expect((await store.persons.signedIn(domain.id, other))?.id).toBe(id)
})

test('two of one name in two domains are two', async () => {
  await map('*', 'all')
  const two = await store.authDomains.create(newAuthDomain('dmz'))
  await store.authDomainMappings.create({
    authDomainId: two.id,
    userGroupId: groups.ops,
    externalGroup: '*',
    profile: 'user',
  })
  const [one, other] = [await signIn(), await store.persons.signedIn(two.id, ann)]
  expect([one?.userName, other?.userName]).toEqual(['ann@corp', 'ann@dmz'])
})

test('sign-ins at once make one, also at two brokers, and none fails', async () => {
  await map('*', 'all')
  const other = await temp.open()
  try {
    for (const stableId of ['id-1', 'id-2', 'id-3']) {
      const person = { ...ann, userName: `ann-${stableId}`, stableId }
      const made = await Promise.all(
        Array.from({ length: 8 }, (_, at) =>
          [store, other][at % 2]!.persons.signedIn(domain.id, { ...person, displayName: `Ann ${at % 2}` }),
        ),
      )
      expect(made.filter((one) => one === undefined)).toEqual([])
      expect(new Set(made.map((one) => one?.id)).size).toBe(1)
    }
    expect((await store.persons.list(undefined, domain.id)).items).toHaveLength(3)
  } finally {
    await other.close()
  }
})

test('loses at once what a removed or changed mapping gave, and keeps what another one gives', async () => {
  const first = await map('cn=admins,dc=lab', 'ops', 'operator')
  const second = await map('CN=admins, dc=LAB', 'dba')
  const { id } = (await signIn())!
  await store.authDomainMappings.remove(first.id)
  expect(await store.users.find(id)).toMatchObject({ groupIds: [groups.dba], profile: 'user' })
  await store.authDomainMappings.update(second.id, { externalGroup: 'cn=others,dc=lab' })
  expect(await store.users.find(id)).toBeUndefined()
})

test('goes with the domain, and with its name', async () => {
  await map('*', 'all')
  const first = (await signIn())!
  await store.authDomains.update(domain.id, { description: 'the same' })
  expect(await store.users.find(first.id)).toBeDefined()
  await store.authDomains.update(domain.id, { domainName: 'corp2' })
  expect(await store.users.find(first.id)).toBeUndefined()
  const second = (await signIn())!
  expect(second.userName).toBe('ann@corp2')
  await store.authDomains.remove(domain.id)
  expect(await store.users.find(second.id)).toBeUndefined()
  expect(await signIn()).toBeUndefined()
})

test('what is used cannot be removed', async () => {
  const mapping = await map('*', 'all', 'operator')
  const [auth] = (await store.externalAuths.list()).items
  await expect(store.externalAuths.remove(auth!.id)).rejects.toThrow('corp')
  await expect(store.userGroups.remove(groups.all)).rejects.toThrow('corp')
  await store.authDomainMappings.remove(mapping.id)
  await store.userGroups.remove(groups.all)
})

test('one domain at most is the default', async () => {
  const next = await store.authDomains.create(newAuthDomain('dmz', { isDefault: true }))
  expect((await store.authDomains.standard())?.id).toBe(next.id)
  expect((await store.authDomains.find('corp'))?.isDefault).toBe(false)
  await store.authDomains.update(domain.id, { isDefault: true })
  expect((await store.authDomains.standard())?.id).toBe(domain.id)
})

test('secrets are set one by one, and removed', async () => {
  const auth = await store.externalAuths.create(newExternalAuth('second'))
  await store.externalAuths.setSealedSecrets(auth.id, new Map([['shared_secret', Uint8Array.of(1)]]))
  await store.externalAuths.setSealedSecrets(auth.id, new Map([['other', Uint8Array.of(2)]]))
  expect(await store.externalAuths.find('second')).toMatchObject({
    secretNames: ['other', 'shared_secret'],
    secretRevision: 2,
  })
  await store.externalAuths.setSealedSecrets(auth.id, new Map([['other', undefined]]))
  expect([...(await store.externalAuths.sealedSecrets(auth.id)).keys()]).toEqual(['shared_secret'])
})

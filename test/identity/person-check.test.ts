import { afterEach, beforeEach, expect, test } from 'vitest'
import type { PersonLook } from '../../src/identity/methods/method.ts'
import { PersonCheck } from '../../src/identity/person-check.ts'
import type { Id } from '../../src/model/objects.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

let temp: TemporaryStore
let domainId: Id
let looks: Record<string, (userName: string) => PersonLook>
let lost: string[]

const AWAY: PersonLook = { result: 'unavailable', reason: 'no route' }
const ABSENT: PersonLook = { result: 'absent', reason: 'account_disabled' }
const present = (userName: string, groups = ['staff'], stableId = userName): PersonLook => ({
  result: 'present',
  person: { userName, groups, stableId },
})

beforeEach(async () => {
  temp = await temporaryStore()
  looks = {}
  lost = []
  const { store } = temp
  const ids: Id[] = []
  for (const authenticationName of ['first', 'second']) {
    const options = {
      security: 'none',
      bindDn: '',
      baseDn: 'dc=lab',
      directory: 'generic',
      loginAttribute: 'uid',
      nestedGroups: false,
    }
    const servers = [{ host: '192.0.2.9' }]
    const made = { authenticationName, description: '', type: 'LDAP', servers, timeoutMs: 1000, options }
    ids.push((await store.externalAuths.create(made as never)).id)
  }
  const domain = await store.authDomains.create({
    domainName: 'CORP',
    description: '',
    type: 'LDAP',
    isDefault: false,
    externalAuthIds: ids,
    secondaryAuthIds: [],
    attributes: {},
    defaultLanguage: 'en',
  })
  domainId = domain.id
  for (const name of ['staff', 'admins']) {
    const group = { groupName: name, description: '', userIds: [], timeframeIds: [] }
    const { id } = await store.userGroups.create(group as never)
    const mapping = { authDomainId: domainId, userGroupId: id, externalGroup: name, profile: 'user' }
    await store.authDomainMappings.create(mapping)
  }
})
afterEach(() => temp.remove())

async function signedIn(userName: string, groups = ['staff'], stableId = userName): Promise<Id> {
  return (await temp.store.persons.signedIn(domainId, { userName, groups, stableId }))!.id
}

async function check(users: Id[]): Promise<void> {
  const look = (name: string) => async (userName: string) => looks[name]?.(userName) ?? AWAY
  const options = {
    store: temp.store,
    registry: {
      of: async ({ authenticationName }: { authenticationName: string }) => ({
        look: look(authenticationName),
      }),
    },
    users: () => [...users],
    onLost: (userName: string, reason: string) => lost.push(`${userName} ${reason}`),
  }
  await new PersonCheck(options as never).run()
}

test('a person that is disabled at the first server that answers is disabled, until the next sign-in', async () => {
  const alice = await signedIn('alice')
  looks = { second: () => ABSENT }
  await check([alice])
  expect(lost).toEqual(['alice@CORP account_disabled'])
  expect((await temp.store.users.find(alice))?.isDisabled).toBe(true)
  expect(await signedIn('alice')).toBe(alice)
  expect((await temp.store.users.find(alice))?.isDisabled).toBe(false)
})

test('a person that has nothing but a sign-in by cookie is looked at, too', async () => {
  const [alice, bob] = [await signedIn('alice'), await signedIn('bob')]
  const signIn = { userId: alice, secretRevision: 0, begin: 1, lastUse: 1 }
  const limits = { ofUser: 1, all: 1 }
  await temp.store.signIns.begin(new Uint8Array(32), signIn, { begin: 0, lastUse: 0 }, limits)
  looks = { first: () => ABSENT }
  await check([])
  expect(lost).toEqual(['alice@CORP account_disabled'])
  expect((await temp.store.users.find(bob))?.isDisabled).toBe(false)
})

test('servers that do not answer, or cannot be asked, change nothing', async () => {
  const alice = await signedIn('alice')
  await check([alice])
  expect(lost).toEqual([])
  expect((await temp.store.users.find(alice))?.isDisabled).toBe(false)
})

test('groups follow, and a person without a mapped one is forgotten', async () => {
  const [alice, bob] = [await signedIn('alice', ['staff', 'admins']), await signedIn('bob')]
  looks = { first: (userName) => present(userName, userName === 'alice' ? ['staff'] : ['guests']) }
  await check([alice, bob])
  expect((await temp.store.users.find(alice))?.groupIds).toHaveLength(1)
  expect(await temp.store.users.find(bob)).toBeUndefined()
  expect(lost).toEqual(['bob@CORP unmapped'])
})

test('another person that has the name now keeps nothing running', async () => {
  const alice = await signedIn('alice', ['staff'], 'one')
  looks = { first: (userName) => present(userName, ['guests'], 'two') }
  await check([alice])
  expect((await temp.store.users.find(alice))?.isDisabled).toBe(true)
})

test('one that cannot be looked at keeps the others from nothing', async () => {
  const users = [await signedIn('alice'), await signedIn('bob'), await signedIn('carol')]
  looks = {
    first: (userName) => {
      if (userName === 'bob') throw new Error('broken')
      return ABSENT
    },
  }
  await expect(check(users)).rejects.toThrow('broken')
  expect(lost.toSorted()).toEqual(['alice@CORP account_disabled', 'carol@CORP account_disabled'])
})

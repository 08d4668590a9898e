/** A change has those sessions judged that rest on it, and no other. */
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { KEPT_CHANGES } from '../../src/gate/changes.ts'
import { NOTHING } from '../../src/model/profiles.ts'
import type { Store } from '../../src/store/store.ts'
import { newUser } from '../store/fixture.ts'
import { type Crowd, crowd, idOf } from './crowd.ts'

/** Sessions 0 and 2 are of one group, 1 and 3 of the other. */
const SESSIONS = 4
const GROUPS = 2

let all: Crowd
let store: Store
let judged: Set<number>
beforeEach(async () => {
  all = await crowd(SESSIONS, { groups: GROUPS })
  store = all.temporary.store
  judged = new Set()
  const { some } = store.users
  store.users.some = (ids) => {
    for (const id of ids) judged.add(Number(id.slice(2)))
    return some(ids)
  }
})
afterEach(() => all.temporary.remove())

const numbersOf = (stopped: ReadonlySet<string>) => [...stopped].map((id) => all.sessions.indexOf(id)).sort()

async function expectReviewed(touched: number[], ended: number[]): Promise<void> {
  await all.gate.review()
  expect([...judged].sort()).toEqual(touched)
  expect(numbersOf(all.stopped)).toEqual(ended)
}

const [user, group, device, service, account, domain, grant] = [
  idOf('user'),
  idOf('group'),
  idOf('device'),
  idOf('service'),
  idOf('account'),
  idOf('domain'),
  idOf('grant'),
]
const members = (of: readonly number[]) => of.map((number) => idOf('user', number))
const targets = (of: readonly number[]) =>
  of.map((number) => ({ accountId: idOf('account', number), serviceId: idOf('service', number) }))

type Case = [what: string, change: () => Promise<unknown>, touched: number[], ended: number[]]

const ENDING: Case[] = [
  ['a user is disabled', () => store.users.update(user, { isDisabled: true }), [0], [0]],
  ['a user is removed', () => store.users.remove(user), [0], [0]],
  ['a user leaves the group', () => store.users.update(user, { groupIds: [] }), [0], [0]],
  ['a group loses a user', () => store.userGroups.update(group, { userIds: members([2]) }), [0], [0]],
  ['a user’s key goes', () => store.users.update(user, { sshPublicKeys: [] }), [0], [0]],
  [
    'a group loses a target',
    () => store.targetGroups.update(group, { sessionAccounts: targets([2]) }),
    [0],
    [0],
  ],
  [
    'a service allows less',
    () => store.services.update(service, { subprotocols: ['SFTP_SESSION'] }),
    [0],
    [0],
  ],
  [
    'an account moves to another device',
    () => store.accounts.update(account, { domainId: idOf('domain', 1), accountName: 'moved' }),
    [0],
    [0],
  ],
  ['an authorization is removed', () => store.authorizations.remove(grant), [0, 2], [0, 2]],
  [
    'an authorization opens no session',
    () => store.authorizations.update(grant, { authorizeSessions: false }),
    [0, 2],
    [0, 2],
  ],
  [
    'an authorization allows less',
    () => store.authorizations.update(grant, { subprotocols: ['SFTP_SESSION'] }),
    [0, 2],
    [0, 2],
  ],
  [
    'an authorization records',
    () => store.authorizations.update(grant, { isRecorded: true }),
    [0, 2],
    [0, 2],
  ],
  [
    'another authorization records',
    () =>
      store.authorizations.create({
        userGroupId: group,
        targetGroupId: idOf('group', 1),
        description: '',
        authorizeSessions: true,
        authorizePasswordRetrieval: false,
        subprotocols: ['SSH_SHELL'],
        isRecorded: true,
        recordingMode: 'standard',
      }),
    [0, 2],
    [],
  ],
  [
    'another authorization for the same target records',
    async () => {
      const { id } = await store.targetGroups.create({
        groupName: 'more',
        description: '',
        sessionAccounts: targets([0]),
        interactiveServiceIds: [],
        mappingServiceIds: [],
        passwordRetrievalAccountIds: [],
      })
      await store.authorizations.create({
        userGroupId: group,
        targetGroupId: id,
        description: '',
        authorizeSessions: true,
        authorizePasswordRetrieval: false,
        subprotocols: ['SSH_SHELL'],
        isRecorded: true,
        recordingMode: 'standard',
      })
    },
    [0, 2],
    [0],
  ],
]

const HARMLESS: Case[] = [
  ['somebody else is created', () => store.users.create(newUser('other')), [], []],
  ['a device is described', () => store.devices.update(device, { description: 'new' }), [0], []],
  ['a domain is described', () => store.domains.update(domain, { description: 'new' }), [0], []],
  [
    'a credential is replaced',
    () => store.accounts.setSealedCredentials(account, [{ type: 'password', sealed: new Uint8Array(9) }]),
    [0],
    [],
  ],
  ['a group is renamed', () => store.userGroups.update(group, { groupName: 'new' }), [0, 2], []],
  ['a target group is renamed', () => store.targetGroups.update(group, { groupName: 'new' }), [0, 2], []],
  [
    'a profile is made',
    () => store.profiles.create({ profileName: 'p', description: '', rights: NOTHING, isFactory: false }),
    [0, 1, 2, 3],
    [],
  ],
  ['an event is written', () => store.settings.set('x', new Uint8Array(1)), [], []],
]

describe('a change', () => {
  test.each([...ENDING, ...HARMLESS])(
    'touches those who rest on it: %s',
    async (_, change, touched, ended) => {
      await change()
      await expectReviewed(touched, ended)
      judged.clear()
      await expectReviewed([], ended)
    },
  )

  test('of more groups than are looked up touches everybody', async () => {
    for (let number = 0; number < 20; number++)
      await store.userGroups.create({ groupName: `more${number}`, description: '', userIds: [] })
    await expectReviewed([0, 1, 2, 3], [])
  })

  test('by SQL alone is seen too', async () => {
    const database = new DatabaseSync(all.temporary.path)
    database.exec(`delete from user_group_members where user_id = '${user}'`)
    database.close()
    await expectReviewed([0], [0])
  })
})

test('a change of a kind that only a newer program knows touches everybody', async () => {
  const database = new DatabaseSync(all.temporary.path)
  database.exec(`insert into changes (kind, object) values ('planet', 'X')`)
  database.close()
  await expectReviewed([0, 1, 2, 3], [])
})

describe('the log of changes', () => {
  /** Writes changes that touch no session, as an import of many users does. */
  function flood(count: number): void {
    const database = new DatabaseSync(all.temporary.path)
    database.exec(`insert into changes (kind, object)
      with recursive n (n) as (select 1 union all select n + 1 from n where n < ${count}) select 'user', 'X' || n from n`)
    database.close()
  }

  test('is read in pieces: a change before and behind thousands of others counts', async () => {
    await store.users.update(user, { isDisabled: true })
    flood(KEPT_CHANGES - 10)
    await store.users.remove(idOf('user', 1))
    await expectReviewed([0, 1], [0, 1])
  })

  test('of which a reader has missed a part has everybody reviewed, and is bounded', async () => {
    await store.users.update(user, { isDisabled: true })
    flood(KEPT_CHANGES + 5_000)
    await expectReviewed([0, 1, 2, 3], [0])
    for (let round = 0; round < 4; round++) await all.gate.review()
    const { first, last } = await store.changes.kept()
    expect(last - first + 1).toBe(KEPT_CHANGES)
  })

  test('of which another reader has removed what was not read has everybody reviewed', async () => {
    await store.users.update(user, { isDisabled: true })
    await store.devices.update(device, { description: 'new' })
    await store.changes.removeOldest(1, 100)
    await expectReviewed([0, 1, 2, 3], [0])
  })
})

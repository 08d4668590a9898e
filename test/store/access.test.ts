import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { canonicalName } from '../../src/access/targets.ts'
import { FACTORY_CONNECTION_POLICIES } from '../../src/model/objects.ts'
import { isOnPostgres } from '../peers/databases.ts'
import { type Estate, newAccount, newService, newUser, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
let estate: Estate
beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
})
afterEach(() => temp.remove())

describe('the targets of a user', () => {
  it('are rows with everything that a session needs', async () => {
    const { user, account, domain, device, service, authorization } = estate
    expect(await temp.store.access.sessionTargets(user.id, 0)).toEqual([
      {
        kind: 'account',
        accountId: account.id,
        accountName: 'root',
        accountLogin: 'root',
        domainId: domain.id,
        domainName: 'local',
        isLocal: true,
        deviceId: device.id,
        deviceName: 'srv1',
        deviceDescription: 'web',
        host: '192.0.2.1',
        serviceId: service.id,
        serviceName: 'ssh',
        protocol: 'SSH',
        port: 22,
        serviceSubprotocols: [],
        connectionPolicyId: FACTORY_CONNECTION_POLICIES.SSH,
        hostKeyPolicy: 'first_sight',
        authorizationId: authorization.id,
        authorizationName: 'ops:servers',
        timeframes: [],
        authorizationSubprotocols: ['SSH_SHELL'],
        isRecorded: true,
        recordingMode: 'standard',
      },
    ])
  })

  it('can be asked for one device', async () => {
    expect(await temp.store.access.sessionTargets(estate.user.id, 0, { device: 'SRV1' })).toHaveLength(1)
    expect(await temp.store.access.sessionTargets(estate.user.id, 0, { device: 'srv%' })).toEqual([])
  })

  it('are none for a user outside the group, and gone when the right is', async () => {
    const { store } = temp
    const stranger = await store.users.create(newUser('stranger'))
    expect(await store.access.sessionTargets(stranger.id, 0)).toEqual([])
    await store.authorizations.update(estate.authorization.id, { authorizeSessions: false })
    expect(await store.access.sessionTargets(estate.user.id, 0)).toEqual([])
    await store.authorizations.update(estate.authorization.id, { authorizeSessions: true })
    await store.users.update(estate.user.id, { groupIds: [] })
    expect(await store.access.sessionTargets(estate.user.id, 0)).toEqual([])
  })

  it('have a row for each authorization', async () => {
    const { store } = temp
    const groupIds = [estate.userGroup.id]
    const more = await store.userGroups.create({
      groupName: 'more',
      description: '',
      userIds: [estate.user.id],
    })
    await store.authorizations.create({ ...estate.authorization, userGroupId: more.id, isRecorded: false })
    const rows = await store.access.sessionTargets(estate.user.id, 0)
    expect(rows.map((row) => [row.authorizationName, row.isRecorded])).toEqual([
      ['ops:servers', true],
      ['more:servers', false],
    ])
    await store.users.update(estate.user.id, { groupIds })
    expect(await store.access.sessionTargets(estate.user.id, 0)).toHaveLength(1)
  })

  it('hold global accounts on every device of the group, and no local account on another device', async () => {
    const { store } = temp
    const corp = await store.domains.create({ domainName: 'corp', description: '' })
    const svc = await store.accounts.create(newAccount(corp.id, 'svc'))
    const srv2 = await store.devices.create({ deviceName: 'srv2', host: '192.0.2.2', description: '' })
    const ssh2 = await store.services.create(newService(srv2.id))
    const all = [estate.account, svc].flatMap((account) =>
      [estate.service, ssh2].map((service) => ({ accountId: account.id, serviceId: service.id })),
    )
    await store.targetGroups.update(estate.targetGroup.id, { sessionAccounts: all })
    expect((await store.access.sessionTargets(estate.user.id, 0)).map(canonicalName)).toEqual([
      'root@local:srv1:ssh',
      'svc@corp:srv1:ssh',
      'svc@corp:srv2:ssh',
    ])
  })
})

describe('targets without a stored account', () => {
  const hold = (interactiveServiceIds: string[], mappingServiceIds: string[]) =>
    temp.store.targetGroups.update(estate.targetGroup.id, { interactiveServiceIds, mappingServiceIds })

  it('are rows beside those of accounts, in the order of devices and services', async () => {
    const { store } = temp
    const { user, device, service } = estate
    const before = await store.services.create(newService(device.id, { serviceName: 'Assh' }))
    await store.users.update(user.id, { userName: 'alice@corp' })
    await hold([service.id, before.id], [service.id])
    const rows = await store.access.sessionTargets(user.id, 0)
    expect(rows.map((row) => [row.kind, canonicalName(row)])).toEqual([
      ['interactive', '@srv1:Assh'],
      ['account', 'root@local:srv1:ssh'],
      ['interactive', '@srv1:ssh'],
      ['mapping', 'alice@srv1:ssh'],
    ])
    const names = async (filter: Parameters<typeof store.access.sessionTargets>[2]) =>
      (await store.access.sessionTargets(user.id, 0, filter)).map(canonicalName)
    expect(await names({ device: 'SRV1' })).toHaveLength(4)
    expect(await names({ device: 'srv2' })).toEqual([])
    const granted = async (accountId?: string) =>
      (await store.access.grants([{ userId: user.id, serviceId: service.id, accountId }])).map(canonicalName)
    expect(await granted()).toEqual(['@srv1:ssh', 'alice@srv1:ssh'])
    expect(await granted(estate.account.id)).toEqual(['root@local:srv1:ssh'])
  })

  it('are told apart by user and target, however many are asked for at a time', async () => {
    const { store } = temp
    const { user, service, account, userGroup } = estate
    await hold([service.id], [])
    const users = [user]
    for (let number = 2; number <= 150; number++) {
      const groupIds = number % 2 === 0 ? [] : [userGroup.id]
      users.push(await store.users.create(newUser(`ops${number}`, { groupIds })))
    }
    const ids = users.map(({ id }) => id)
    const members = users.filter(({ groupIds }) => groupIds.length > 0).map(({ id }) => id)
    expect(members).toHaveLength(75)
    const asked = ids.flatMap((userId) =>
      [account.id, undefined].map((accountId) => ({ userId, serviceId: service.id, accountId })),
    )
    const rows = await store.access.grants(asked)
    const wanted = members.flatMap((id) => [`${id} ${account.id}`, `${id} undefined`])
    expect(rows.map((row) => `${row.userId} ${row.accountId}`).sort()).toEqual(wanted.sort())
    expect(
      await store.access.grants([{ userId: user.id, serviceId: service.id, accountId: service.id }]),
    ).toEqual([])
    expect([...(await store.access.withTargets(ids, 0))].sort()).toEqual([...members].sort())
    expect((await store.access.membersAmong(ids, userGroup.id)).sort()).toEqual([...members].sort())
    expect((await store.users.some([...ids, service.id])).map(({ id }) => id).sort()).toEqual([...ids].sort())
    expect(await store.access.groupsAt(estate.targetGroup.id)).toEqual([userGroup.id])
  })

  it('tell whether the user is mapped anywhere, and are gone with the right', async () => {
    const { store } = temp
    const { user, service, authorization } = estate
    await hold([service.id], [])
    expect(await store.access.hasMapping(user.id)).toBe(false)
    await hold([], [service.id])
    expect(await store.access.hasMapping(user.id)).toBe(true)
    expect(await store.access.withTargets([user.id], 0)).toEqual(new Set([user.id]))
    await store.authorizations.update(authorization.id, { authorizeSessions: false })
    expect(await store.access.hasMapping(user.id)).toBe(false)
    expect(await store.access.withTargets([user.id], 0)).toEqual(new Set())
    expect(await store.access.sessionTargets(user.id, 0)).toEqual([])
  })

  it('keep their service and device, and only stand in a group once', async () => {
    const { store } = temp
    const { service, device, targetGroup, account } = estate
    await store.targetGroups.update(targetGroup.id, { sessionAccounts: [] })
    await store.accounts.remove(account.id)
    const group = await hold([service.id, service.id], [])
    expect(group).toMatchObject({ interactiveServiceIds: [service.id], mappingServiceIds: [] })
    await expect(store.services.remove(service.id)).rejects.toThrow('in use by target group "servers"')
    await expect(store.devices.remove(device.id)).rejects.toThrow('in use by target group "servers"')
    await hold([], [])
    await store.devices.remove(device.id)
    await expect(hold([service.id], [])).rejects.toThrow('session.interactive_logins')
  })
})

it('ten thousand targets do not slow down the one that is opened', async () => {
  const { store } = temp
  const corp = await store.domains.create({ domainName: 'corp', description: '' })
  const svc = await store.accounts.create(newAccount(corp.id, 'svc'))
  const numbers = 'with recursive n (i) as (select 1 union all select i + 1 from n where i < 10000)'
  await temp.sql(`
    insert into devices ${numbers} select 'D' || i, 'dev' || i, 'dev' || i, 'h', '' from n;
    insert into services
      (id, device_id, service_name, name_key, protocol, port, subprotocols, host_key_policy, connection_policy_id)
      ${numbers} select 'S' || i, 'D' || i, 'ssh', 'ssh', 'SSH', 22, '[]', 'first_sight', null from n;
    insert into target_group_sessions ${numbers} select '${estate.targetGroup.id}', '${svc.id}', 'S' || i from n`)
  const timed = async (device: string) => {
    const begin = performance.now()
    expect(await store.access.sessionTargets(estate.user.id, 0, { device })).toHaveLength(1)
    return performance.now() - begin
  }
  expect(await store.access.sessionTargets(estate.user.id, 0)).toHaveLength(10_001)
  // A server plans a query some times before it keeps the plan.
  if (isOnPostgres()) return
  const times: number[] = []
  for (let i = 1; i <= 21; i++) times.push(await timed(`dev${i * 400}`))
  // A fraction of a millisecond with the indexes, tens of them with a scan of all rows.
  expect(times.toSorted((a, b) => a - b)[10]).toBeLessThan(5)
})

describe('the retrieval of a secret', () => {
  it('is allowed for the accounts of the group, of both kinds, by authorizations that say so', async () => {
    const { store } = temp
    const only = await store.accounts.create(newAccount(estate.domain.id, 'db'))
    const asked = async (user = estate.user, account = estate.account) => {
      const found = await store.access.retrievals([{ userId: user.id, accountId: account.id }])
      return found.map(({ authorizationId }) => authorizationId)
    }
    expect(await asked()).toEqual([estate.authorization.id])
    expect(await asked(estate.user, only)).toEqual([])
    await store.targetGroups.update(estate.targetGroup.id, { passwordRetrievalAccountIds: [only.id] })
    expect(await asked(estate.user, only)).toEqual([estate.authorization.id])
    expect(await asked(await store.users.create(newUser('stranger')))).toEqual([])
    await store.authorizations.update(estate.authorization.id, { authorizePasswordRetrieval: false })
    expect(await asked()).toEqual([])
  })
})

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  ChangedError,
  DuplicateError,
  InUseError,
  MissingReferenceError,
  SchemaError,
  SortError,
} from '../../src/store/engine/errors.ts'
import { newAccount, newService, newUser, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const NOBODY = '01ARZ3NDEKTSV4RRFFQ69G5FAV'

describe('a store', () => {
  it('keeps its objects when it is opened again', async () => {
    const { user } = await smallEstate(temp.store)
    await temp.store.close()
    const again = await temp.open()
    expect(await again.users.find('ops1')).toEqual(user)
    temp.store = again
  })

  it('refuses a database of a newer program', async () => {
    await temp.sql('insert into schema_migrations (version, applied) values (999, 0)')
    await expect(temp.open()).rejects.toThrow(SchemaError)
    await expect(temp.open()).rejects.toThrow('schema version 999')
  })

  it('gives ids of 26 characters', async () => {
    const { id } = await temp.store.users.create(newUser('a'))
    expect(id).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/)
  })
})

describe('names of users that were there before their look was kept', () => {
  it('are found when somebody would show as they do', async () => {
    const { users } = temp.store
    for (const name of ['сор', 'ВОВ', 'müller', 'ops1']) await users.create(newUser(name))
    const looks = async () =>
      (await temp.sql('select user_name as name, look from users order by id')).map(({ name, look }) => [
        name,
        look,
      ])
    const kept = await looks()
    await temp.sql('update users set look = null')
    expect(await users.lookingLike('cop')).toBeUndefined()
    const lost = kept.filter(([, look]) => look !== null).length
    expect(await users.noteLooks()).toBe(lost)
    expect(await looks()).toEqual(kept)
    expect((await users.lookingLike('cop'))?.userName).toBe('сор')
    await expect(users.create(newUser('BOB'))).rejects.toThrow(DuplicateError)
    expect(await users.noteLooks()).toBe(0)
  })
})

describe('objects', () => {
  it('are read back as they were written, every field', async () => {
    const { store } = temp
    const estate = await smallEstate(store)
    const group = estate.userGroup.id
    const full = newUser('Zoë', {
      displayName: 'Zoë O’Hara',
      email: 'zoe@example.com',
      profile: 'auditor',
      userAuths: ['local_password', 'local_sshkey'],
      sshPublicKeys: ['ssh-ed25519 AAAA zoe'],
      isDisabled: true,
      expirationDate: 1_900_000_000_000,
      ipSource: ['10.0.0.0/8'],
      groupIds: [group],
    })
    const user = await store.users.create(full)
    expect(user).toEqual({ ...full, id: user.id })
    expect(await store.users.find(user.id)).toEqual(user)
    expect((await store.userGroups.find('OPS'))?.userIds.toSorted()).toEqual(
      [estate.user.id, user.id].toSorted(),
    )
    expect(await store.devices.find('SRV1')).toEqual(estate.device)
    expect(await store.services.find(estate.service.id)).toEqual(estate.service)
    expect(await store.services.ofDevice(estate.device.id)).toEqual([estate.service])
    expect(await store.domains.find(estate.domain.id)).toEqual(estate.domain)
    expect(await store.domains.ofDevice(estate.device.id)).toEqual([estate.domain])
    expect(await store.accounts.find(estate.account.id)).toEqual(estate.account)
    expect(await store.accounts.inDomain(estate.domain.id, 'ROOT')).toEqual(estate.account)
    expect(await store.targetGroups.find('servers')).toEqual(estate.targetGroup)
    expect(await store.authorizations.find(estate.authorization.id)).toEqual(estate.authorization)
    expect(await store.authorizations.ofUserGroups([group])).toEqual([estate.authorization])
  })

  it('change only in the fields that an update names', async () => {
    const { store } = temp
    const { user, device, authorization } = await smallEstate(store)
    const changed = await store.users.update(user.id, { email: 'ops1@example.com', expirationDate: 5 })
    expect(changed).toEqual({ ...user, email: 'ops1@example.com', expirationDate: 5 })
    expect(await store.users.update(user.id, { expirationDate: undefined })).toEqual({
      ...user,
      email: 'ops1@example.com',
    })
    expect(await store.devices.update(device.id, { deviceName: 'Srv2' })).toEqual({
      ...device,
      deviceName: 'Srv2',
    })
    expect(await store.devices.find('srv1')).toBeUndefined()
    expect(await store.authorizations.update(authorization.id, { isRecorded: false })).toEqual({
      ...authorization,
      isRecorded: false,
    })
  })

  it('have names that are unique without regard to case or composition', async () => {
    const { store } = temp
    await store.users.create(newUser('Zoë'))
    await expect(store.users.create(newUser('zOE\u0308'))).rejects.toThrow(DuplicateError)
    await store.devices.create({ deviceName: 'srv1', host: 'h', description: '' })
    const other = await store.devices.create({ deviceName: 'srv2', host: 'h', description: '' })
    await expect(store.devices.create({ deviceName: 'SRV1', host: 'h', description: '' })).rejects.toThrow(
      'device "SRV1" already exists',
    )
    await expect(store.devices.update(other.id, { deviceName: 'Srv1' })).rejects.toThrow(DuplicateError)
  })

  it('have service and local domain names that are unique on their device, global domains everywhere', async () => {
    const { store } = temp
    const a = await store.devices.create({ deviceName: 'a', host: 'h', description: '' })
    const b = await store.devices.create({ deviceName: 'b', host: 'h', description: '' })
    for (const { id } of [a, b]) {
      await store.services.create(newService(id))
      await store.domains.create({ domainName: 'local', description: '', deviceId: id })
      await expect(store.services.create(newService(id, { serviceName: 'SSH' }))).rejects.toThrow(
        DuplicateError,
      )
      await expect(
        store.domains.create({ domainName: 'Local', description: '', deviceId: id }),
      ).rejects.toThrow(DuplicateError)
    }
    const corp = await store.domains.create({ domainName: 'corp.com', description: '' })
    await expect(store.domains.create({ domainName: 'CORP.com', description: '' })).rejects.toThrow(
      DuplicateError,
    )
    expect((await store.domains.list()).items).toEqual([corp])
    expect(await store.domains.find('local')).toBeUndefined()
    await store.accounts.create(newAccount(corp.id, 'svc'))
    await expect(store.accounts.create(newAccount(corp.id, 'SVC'))).rejects.toThrow(DuplicateError)
  })

  it('allow one authorization for a pair of groups', async () => {
    const { store } = temp
    const { authorization } = await smallEstate(store)
    await expect(store.authorizations.create(authorization)).rejects.toThrow(
      'authorization "ops:servers" already exists',
    )
    await store.authorizations.remove(authorization.id)
    await store.authorizations.create(authorization)
  })

  it('refuse to refer to what does not exist, and leave nothing behind', async () => {
    const { store } = temp
    const { authorization, targetGroup, service } = await smallEstate(store)
    await expect(store.users.create(newUser('x', { groupIds: [NOBODY] }))).rejects.toThrow(
      MissingReferenceError,
    )
    expect(await store.users.find('x')).toBeUndefined()
    await expect(store.services.create(newService(NOBODY))).rejects.toThrow(MissingReferenceError)
    await expect(store.accounts.create(newAccount(NOBODY, 'x'))).rejects.toThrow(MissingReferenceError)
    await expect(store.authorizations.update(authorization.id, { userGroupId: NOBODY })).rejects.toThrow(
      'user_group',
    )
    const sessionAccounts = [{ accountId: NOBODY, serviceId: service.id }]
    await expect(store.targetGroups.update(targetGroup.id, { sessionAccounts })).rejects.toThrow(
      MissingReferenceError,
    )
    expect(await store.targetGroups.find('servers')).toEqual(targetGroup)
    await expect(store.users.remove(NOBODY)).rejects.toThrow(MissingReferenceError)
    await expect(store.devices.update(NOBODY, { host: 'h' })).rejects.toThrow(MissingReferenceError)
  })

  it('stay while something uses them, and the refusal says what', async () => {
    const { store } = temp
    const e = await smallEstate(store)
    await store.targetGroups.create({
      groupName: 'secrets',
      description: '',
      sessionAccounts: [],
      interactiveServiceIds: [],
      mappingServiceIds: [],
      passwordRetrievalAccountIds: [e.account.id],
    })
    await expect(store.devices.remove(e.device.id)).rejects.toThrow(InUseError)
    await expect(store.devices.remove(e.device.id)).rejects.toMatchObject({
      users: ['target group "servers"', 'account "root"'],
    })
    await expect(store.services.remove(e.service.id)).rejects.toMatchObject({
      users: ['target group "servers"'],
    })
    await expect(store.domains.remove(e.domain.id)).rejects.toMatchObject({ users: ['account "root"'] })
    await expect(store.accounts.remove(e.account.id)).rejects.toMatchObject({
      users: ['target group "secrets"', 'target group "servers"'],
    })
    await expect(store.userGroups.remove(e.userGroup.id)).rejects.toThrow(
      'the authorization for target group "servers"',
    )
    await expect(store.targetGroups.remove(e.targetGroup.id)).rejects.toThrow(
      'the authorization for user group "ops"',
    )
  })

  it('can be removed once nothing uses them, in the order of use', async () => {
    const { store } = temp
    const e = await smallEstate(store)
    await store.checkouts.create({ accountId: e.account.id, userId: e.user.id, begin: 1, expires: 2 }, false)
    await store.authorizations.remove(e.authorization.id)
    await store.targetGroups.remove(e.targetGroup.id)
    await store.accounts.remove(e.account.id)
    await store.devices.remove(e.device.id)
    await store.users.remove(e.user.id)
    expect(await store.userGroups.find('ops')).toEqual(e.userGroup)
    await store.userGroups.remove(e.userGroup.id)
    expect((await store.services.list()).total + (await store.accounts.list()).total).toBe(0)
    expect(await store.domains.find(e.domain.id)).toBeUndefined()
  })

  it('come in pages, sorted without regard to case', async () => {
    const { store } = temp
    for (const name of ['b', 'A', 'c', 'D']) await store.users.create(newUser(name, { email: `${name}@x` }))
    const names = async (page: Parameters<typeof store.users.list>[0]) =>
      (await store.users.list(page)).items.map((user) => user.userName).join('')
    expect(await names(undefined)).toBe('AbcD')
    expect(await names({ limit: 2, offset: 1 })).toBe('bc')
    expect(await names({ limit: -1, offset: 0, sort: ['profile', '-user_name'] })).toBe('DcbA')
    expect((await store.users.list({ limit: 1, offset: 0 })).total).toBe(4)
    await expect(names({ limit: 1, offset: 0, sort: ['password_hash'] })).rejects.toThrow(SortError)
    await expect(names({ limit: 1, offset: 0, sort: ['__proto__'] })).rejects.toThrow(SortError)
  })

  it('take hostile names as data', async () => {
    const { store } = temp
    const name = `x'); drop table users; --%_*`
    const user = await store.users.create(newUser(name))
    expect(await store.users.find(name)).toEqual(user)
    expect(await store.users.find('%')).toBeUndefined()
  })
})

describe('secrets of users and keys', () => {
  it('are no part of the objects', async () => {
    const { store } = temp
    const user = await store.users.create(newUser('a'))
    expect(await store.users.secretsOf(user.id)).toEqual({})
    await store.users.setPasswordHash(user.id, Buffer.from('sealed'))
    expect(await store.users.secretsOf(user.id)).toEqual({
      passwordHash: new Uint8Array(Buffer.from('sealed')),
    })
    expect(JSON.stringify(await store.users.find('a'))).not.toContain('argon2')
  })

  it('find an API key by the hash of the key only', async () => {
    const { store } = temp
    const hash = new Uint8Array(32).fill(7)
    const key = await store.apiKeys.createWithHash(
      { keyName: 'ci', profile: 'user', ipSource: ['::1'], createdAt: 9 },
      hash,
    )
    expect(await store.apiKeys.findByHash(hash)).toEqual(key)
    expect(await store.apiKeys.findByHash(new Uint8Array(32))).toBeUndefined()
    await store.apiKeys.remove(key.id)
    expect(await store.apiKeys.findByHash(hash)).toBeUndefined()
  })

  it('keeps sealed credentials with their account', async () => {
    const { store } = temp
    const { account } = await smallEstate(store)
    const credentials = [
      { type: 'ssh_key', sealed: new Uint8Array([1, 2]) },
      { type: 'password', sealed: new Uint8Array([3]) },
    ]
    await store.accounts.setSealedCredentials(account.id, credentials)
    expect(await store.accounts.sealedCredentials(account.id)).toEqual(credentials)
    expect((await store.accounts.find(account.id))?.credentialTypes).toEqual(['ssh_key', 'password'])
    await expect(store.accounts.setSealedCredentials(NOBODY, [])).rejects.toThrow(MissingReferenceError)
  })
})

describe('host keys', () => {
  it('are pinned for a service once each and go with it', async () => {
    const { store } = temp
    const { device, service, targetGroup } = await smallEstate(store)
    const key = {
      deviceId: device.id,
      serviceId: service.id,
      keyType: 'ssh-ed25519',
      fingerprint: 'SHA256:x',
      key: 'AAAA',
      firstSeen: 1,
      state: 'offered' as const,
    }
    const pinned = await store.hostKeys.create(key)
    await expect(store.hostKeys.create(key)).rejects.toThrow(DuplicateError)
    await store.hostKeys.update(pinned.id, { state: 'accepted' })
    expect(await store.hostKeys.ofService(service.id)).toEqual([{ ...pinned, state: 'accepted' }])
    await store.targetGroups.update(targetGroup.id, { sessionAccounts: [] })
    await store.services.remove(service.id)
    expect(await store.hostKeys.find(pinned.id)).toBeUndefined()
  })
})

describe('checkouts', () => {
  it('are active until they end or expire, and can exclude others', async () => {
    const { store } = temp
    const { account, user } = await smallEstate(store)
    const begin = { accountId: account.id, userId: user.id, begin: 100, expires: 200 }
    const first = await store.checkouts.create(begin, true)
    expect(await store.checkouts.active(account.id, 199)).toEqual([first])
    expect(await store.checkouts.active(account.id, 200)).toEqual([])
    await expect(store.checkouts.create(begin, true)).rejects.toThrow(DuplicateError)
    const second = await store.checkouts.create(begin, false)
    await store.checkouts.end(first.id, 150)
    expect(await store.checkouts.find(first.id)).toEqual({ ...first, end: 150 })
    await expect(store.checkouts.end(first.id, 160)).rejects.toThrow(MissingReferenceError)
    expect(await store.checkouts.active(account.id, 160)).toEqual([second])
  })

  it('are extended while they are out, from the end that was known', async () => {
    const { store } = temp
    const { account, user } = await smallEstate(store)
    const { id } = await store.checkouts.create(
      { accountId: account.id, userId: user.id, begin: 100, expires: 200 },
      true,
    )
    await expect(store.checkouts.extend(id, 200, 300, () => 200)).rejects.toThrow(MissingReferenceError)
    await store.checkouts.extend(id, 200, 300, () => 199)
    await expect(store.checkouts.extend(id, 200, 400, () => 199)).rejects.toThrow(ChangedError)
    expect((await store.checkouts.find(id))?.expires).toBe(300)
    await store.checkouts.end(id, 250)
    await expect(store.checkouts.extend(id, 300, 400, () => 251)).rejects.toThrow(MissingReferenceError)
  })

  it('lets exactly one of many simultaneous exclusive checkouts through', async () => {
    const { store } = temp
    const { account, user } = await smallEstate(store)
    const tries = Array.from({ length: 20 }, () =>
      store.checkouts.create({ accountId: account.id, userId: user.id, begin: 1, expires: 9 }, true),
    )
    const results = await Promise.allSettled(tries)
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1)
  })
})

describe('sessions', () => {
  it('are current until they have an end, newest first', async () => {
    const { store } = temp
    const session = (id: string, begin: number) => ({
      id,
      begin,
      user: 'ops1',
      sourceIp: '::1',
      protocol: 'SSH' as const,
      subprotocols: ['SSH_SHELL' as const],
      account: 'root',
      domain: 'local',
      device: 'srv1',
      service: 'ssh',
      targetHost: '192.0.2.1',
      authorization: 'ops:servers',
      isRecorded: true,
      bytesIn: 0,
      bytesOut: 0,
    })
    await store.sessions.create(session('S1', 1))
    await store.sessions.create(session('S2', 2))
    const recording = { state: 'sealed' as const, size: 10, frames: 2, digest: 'ab' }
    await store.sessions.update('S1', { end: 5, result: 'killed', reason: 'by admin', bytesIn: 3, recording })
    expect(await store.sessions.find('S1')).toEqual({
      ...session('S1', 1),
      end: 5,
      result: 'killed',
      reason: 'by admin',
      bytesIn: 3,
      recording,
    })
    const ids = async (status?: 'current' | 'closed') =>
      (await store.sessions.list(status ? { status } : {})).items.map((s) => s.id)
    expect(await ids()).toEqual(['S2', 'S1'])
    expect(await ids('current')).toEqual(['S2'])
    expect(await ids('closed')).toEqual(['S1'])
    await expect(store.sessions.update('S3', { end: 1 })).rejects.toThrow(MissingReferenceError)
  })
})

describe('the audit log', () => {
  it('keeps rows in sequence, byte for byte, and finds those of a session', async () => {
    const { store } = temp
    expect(await store.audit.last()).toBeUndefined()
    const rows = Array.from({ length: 2500 }, (_, i) => ({
      sequence: i + 1,
      time: i,
      code: 'command',
      json: JSON.stringify({ code: 'command', fields: i % 2 === 0 ? { session: 'S1' } : {} }),
      hash: new Uint8Array([i & 255]),
    }))
    await store.audit.append(rows)
    expect(await store.audit.last()).toMatchObject(rows[rows.length - 1]!)
    expect(await store.audit.range(2001, 10)).toMatchObject(rows.slice(2000, 2010))
    expect((await store.audit.ofSession('S1', 3)).map((row) => row.sequence)).toEqual([1, 3, 5])
    await expect(store.audit.append(rows.slice(0, 1))).rejects.toThrow()
    const next = { ...rows[0]!, sequence: 2501 }
    await expect(store.audit.append([next, rows[0]!])).rejects.toThrow()
    expect(await store.audit.last()).toMatchObject(rows[rows.length - 1]!)
    await store.audit.append([])
  })
})

describe('settings', () => {
  it('are values by name', async () => {
    const { store } = temp
    expect(await store.settings.get('x')).toBeUndefined()
    await store.settings.set('x', new Uint8Array([1]))
    await store.settings.set('x', new Uint8Array([2]))
    expect(await store.settings.get('x')).toEqual(new Uint8Array([2]))
    expect(await store.settings.setOnce('x', new Uint8Array([3]))).toEqual(new Uint8Array([2]))
    expect(await store.settings.setOnce('y', new Uint8Array([3]))).toEqual(new Uint8Array([3]))
  })
})

import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { SearchError } from '../../src/search/grammar.ts'
import { parse } from '../../src/search/parser.ts'
import { SortError } from '../../src/store/engine/errors.ts'
import { successor } from '../../src/store/searchable.ts'
import type { WantedAccount } from '../../src/store/store.ts'
import { newAccount, newUser, smallEstate } from './fixture.ts'
import { type TemporaryStore, temporaryStore } from './temp.ts'

let temp: TemporaryStore
beforeEach(async () => {
  temp = await temporaryStore()
})
afterEach(() => temp.remove())

const search = (q: string) => ({ expression: parse(q), variables: {} })
const NOBODY = '01ARZ3NDEKTSV4RRFFQ69G5FAV'
const ALL = { limit: -1, offset: 0 }

describe('a search', () => {
  it('finds by relations, and counts all pages', async () => {
    const { store } = temp
    const { device, domain } = await smallEstate(store)
    const corp = await store.domains.create({ domainName: 'corp', description: '' })
    for (let one = 0; one < 5; one++) await store.accounts.create(newAccount(corp.id, `svc${one}`))
    await store.accounts.create(newAccount(domain.id, 'svc9'))
    const names = async (q: string, page = ALL) => {
      const { items, total } = await store.accounts.list({ ...page, search: search(q) })
      return [items.map(({ accountName }) => accountName), total]
    }
    expect(await names('domain=CORP', { limit: 2, offset: 1 })).toEqual([['svc1', 'svc2'], 5])
    expect(await names(`device=${device.deviceName}`)).toEqual([['root', 'svc9'], 2])
    expect(await names('device="" && account_name~svc*')).toEqual([
      ['svc0', 'svc1', 'svc2', 'svc3', 'svc4'],
      5,
    ])
    expect(await names('account_name~svc* && device=srv1')).toEqual([['svc9'], 1])
    expect(await names('account_name=nobody')).toEqual([[], 0])
    expect(await names('domain=corp', { limit: 0, offset: 0 })).toEqual([[], 5])
    expect(await names('domain=corp', { limit: 5, offset: 9 })).toEqual([[], 5])
  })

  it('finds the same page in order when most objects match', async () => {
    const { store } = temp
    const { domain } = await smallEstate(store)
    const other = await store.domains.create({ domainName: 'corp', description: '' })
    await temp.sql(`insert into accounts (id, account_name, name_key, account_login, domain_id, description)
      with recursive n (n) as (select 10000 union all select n + 1 from n where n < 11499)
      select 'ID' || (n - 10000), 'a' || n, 'a' || n, '', case when n % 5 = 0 then '${domain.id}' else '${other.id}' end, ''
      from n`)
    const expected = Array.from({ length: 1500 }, (_, one) => one).filter((one) => one % 5 !== 0)
    for (const q of ['domain=corp', 'device=""', 'domain=corp || device=nobody']) {
      const page = { limit: 50, offset: 700, search: search(q) }
      const { items, total } = await store.accounts.list(page)
      expect(total).toBe(1200)
      expect(items.map(({ id }) => id)).toEqual(expected.slice(700, 750).map((one) => `ID${one}`))
    }
  })

  it('of an unknown field, or in an unknown order, is an error even where there is nothing', async () => {
    const { users } = temp.store
    await expect(users.list({ ...ALL, search: search('nobody=1') })).rejects.toThrow(SearchError)
    await expect(users.list({ ...ALL, search: search('password_hash~*') })).rejects.toThrow(SearchError)
    const sorted = users.list({ ...ALL, sort: ['nobody'], search: search('user_name=x') })
    await expect(sorted).rejects.toThrow(SortError)
  })

  it('does not read a text as a pattern', async () => {
    const { store } = temp
    for (const name of ['a%b', 'axb', 'a_b', 'a\\b%'])
      await store.users.create(newUser(name.replaceAll('\\', 'B'), { displayName: name }))
    const found = async (q: string) =>
      (await store.users.list({ ...ALL, search: search(q) })).items.map(({ displayName }) => displayName)
    expect(await found('display_name~a%b')).toEqual(['a%b'])
    expect(await found('display_name~a_b')).toEqual(['a_b'])
    expect(await found('display_name~"a\\\\b%"')).toEqual(['a\\b%'])
    expect((await found('display_name~a*b')).toSorted()).toEqual(['a%b', 'a_b', 'axb'])
  })
})

it('the successor of a text is after all that begin with it, and before what follows', () => {
  const bytes = (text: string) => Buffer.from(text)
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (prefix, other) => {
      const next = successor(prefix)
      if (next === undefined) {
        expect(prefix).toMatch(/^\u{10ffff}*$/u)
        return
      }
      expect(Buffer.compare(bytes(prefix + other), bytes(next))).toBe(-1)
      const begins = other.startsWith(prefix)
      const between =
        Buffer.compare(bytes(other), bytes(prefix)) >= 0 && Buffer.compare(bytes(other), bytes(next)) < 0
      expect(between).toBe(begins)
    }),
    { numRuns: 1000 },
  )
  expect(successor('a\u{10ffff}')).toBe('b')
  expect(successor('\ud7ff')).toBe('\ue000')
})

it('names of many objects are read at once; what is gone is left out', async () => {
  const { store } = temp
  const estate = await smallEstate(store)
  const { names } = store
  const { user, userGroup, targetGroup, device, service, domain, account } = estate
  expect(await names.users([user.id, NOBODY])).toEqual(new Map([[user.id, 'ops1']]))
  expect(await names.userGroups([userGroup.id])).toEqual(new Map([[userGroup.id, 'ops']]))
  expect(await names.targetGroups([targetGroup.id])).toEqual(new Map([[targetGroup.id, 'servers']]))
  expect(await names.devices([device.id])).toEqual(new Map([[device.id, 'srv1']]))
  expect(await names.services([service.id])).toEqual(
    new Map([[service.id, { serviceName: 'ssh', deviceName: 'srv1' }]]),
  )
  expect(await names.domains([domain.id])).toEqual(
    new Map([[domain.id, { domainName: 'local', deviceName: 'srv1' }]]),
  )
  expect(await names.accounts([account.id])).toEqual(
    new Map([[account.id, { accountName: 'root', domainName: 'local', deviceName: 'srv1' }]]),
  )
  const corp = await store.domains.create({ domainName: 'corp', description: '' })
  expect((await names.domains([corp.id])).get(corp.id)).toEqual({ domainName: 'corp', deviceName: null })
  expect(await names.users([])).toEqual(new Map())
})

describe('an account that is meant', () => {
  it('is found by its name, narrowed by domain, device, id and who may check it out', async () => {
    const { store } = temp
    const { user, device, domain, account } = await smallEstate(store)
    const other = await store.devices.create({ deviceName: 'srv2', host: 'h', description: '' })
    const local = await store.domains.create({ domainName: 'Local', description: '', deviceId: other.id })
    const corp = await store.domains.create({ domainName: 'corp', description: 'all' })
    const second = await store.accounts.create(newAccount(local.id, 'Root'))
    const third = await store.accounts.create(newAccount(corp.id, 'root'))
    const meant = async (wanted: Omit<WantedAccount, 'account'>, ref = 'ROOT') =>
      (await store.accounts.meant({ account: ref, ...wanted }, 10)).map((one) => one.account.id)
    expect(await meant({})).toEqual([account.id, second.id, third.id].toSorted())
    expect(await meant({ domainName: 'LOCAL' })).toEqual([account.id, second.id].toSorted())
    expect(await meant({ domainName: 'local', device: 'SRV2' })).toEqual([second.id])
    expect(await meant({ device: device.id })).toEqual([account.id])
    expect(await meant({ id: third.id })).toEqual([third.id])
    expect(await meant({ retrievableBy: user.id })).toEqual([account.id])
    expect(await meant({ retrievableBy: NOBODY })).toEqual([])
    expect(await meant({}, second.id.toLowerCase())).toEqual([second.id])
    expect(await meant({}, 'nobody')).toEqual([])
    expect(await store.accounts.meant({ account: 'root' }, 2)).toHaveLength(2)
    expect(await store.accounts.meant({ account: second.id }, 1)).toEqual([
      { account: second, domain: local, device: other },
    ])
    expect(await store.accounts.meant({ account: third.id }, 1)).toEqual([
      { account: third, domain: corp, device: undefined },
    ])
    expect(await store.accounts.inDomain(domain.id, 'ROOT')).toEqual(account)
    expect(await store.accounts.inDomain(domain.id, second.id)).toBeUndefined()
  })
})

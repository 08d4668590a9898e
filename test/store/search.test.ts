import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { type CompiledQuery, Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bind } from '../../src/search/bind.ts'
import { SearchError } from '../../src/search/grammar.ts'
import { parse } from '../../src/search/parser.ts'
import { ACCOUNT_FIELDS } from '../../src/store/accounts.ts'
import { DEVICE_FIELDS } from '../../src/store/devices.ts'
import { NodeSqliteDialect } from '../../src/store/engine/dialect.ts'
import { SortError } from '../../src/store/engine/errors.ts'
import { Patterns } from '../../src/store/engine/patterns.ts'
import { ReadingThread } from '../../src/store/engine/reading-thread.ts'
import { WalSync } from '../../src/store/engine/wal-sync.ts'
import type { Db, Schema } from '../../src/store/migrations/schema.ts'
import { type SqlFields, successor, where } from '../../src/store/searchable.ts'
import { deletableSessions, SESSION_FIELDS } from '../../src/store/sessions.ts'
import type { WantedAccount } from '../../src/store/store.ts'
import { USER_FIELDS } from '../../src/store/users.ts'
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
    const database = new DatabaseSync(temp.path)
    database.exec('begin')
    const insert = database.prepare(
      "insert into accounts (id, account_name, name_key, account_login, domain_id, description) values (?, ?, ?, '', ?, '')",
    )
    for (let one = 0; one < 1500; one++) {
      const name = `a${String(one).padStart(4, '0')}`
      insert.run(`ID${one}`, name, name, one % 5 === 0 ? domain.id : other.id)
    }
    database.exec('commit')
    database.close()
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

/** Returns the database's plan for a query. */
async function planOf(query: (db: Db) => { compile(): CompiledQuery }): Promise<string> {
  const database = new DatabaseSync(temp.path)
  new Patterns(database)
  const db = new Kysely<Schema>({
    dialect: new NodeSqliteDialect(database, new WalSync(temp.path), new ReadingThread({ path: temp.path })),
  })
  const { sql, parameters } = query(db).compile()
  const steps = database.prepare(`explain query plan ${sql}`).all(...(parameters as string[]))
  await db.destroy()
  return steps.map(({ detail }) => detail).join('\n')
}

describe('an index serves', () => {
  const FIELDS = {
    users: USER_FIELDS,
    accounts: ACCOUNT_FIELDS,
    devices: DEVICE_FIELDS,
    sessions: SESSION_FIELDS,
  }
  it.each<[table: keyof typeof FIELDS, q: string, plan: string]>([
    ['users', 'user_name=ops1', 'INDEX sqlite_autoindex_users_2 (name_key=?)'],
    ['users', 'user_name~ops*', 'INDEX sqlite_autoindex_users_2 (name_key>? AND name_key<?)'],
    ['users', 'groups=dba', 'INDEX sqlite_autoindex_users_1 (id=?)'],
    ['users', 'id=01K9T5RZ8Q4W6X2C3V1B0N7M5J', 'INDEX sqlite_autoindex_users_1 (id=?)'],
    ['accounts', 'account_name=root', 'INDEX accounts_name (name_key=?)'],
    ['accounts', 'device=srv1', 'INDEX sqlite_autoindex_accounts_2 (domain_id=?)'],
    ['accounts', 'domain=corp', 'INDEX domains_name (name_key=?)'],
    ['devices', 'host=192.0.2.1', 'INDEX devices_host (host=?)'],
    ['sessions', 'user=ops1', 'INDEX sessions_user (<expr>=?)'],
    ['sessions', 'device=srv1', 'INDEX sessions_device (<expr>=?)'],
    ['sessions', 'begin~2031-06-30', 'INDEX sessions_begin (begin_time>? AND begin_time<?)'],
  ])('%s: %s', async (table, q, plan) => {
    const fields: SqlFields = FIELDS[table]
    const query = (db: Db) =>
      db
        .selectFrom(table as 'users')
        .selectAll()
        .where(where(bind(search(q), fields), fields, { most: false, isHere: false }))
    expect(await planOf(query)).toContain(plan)
  })

  it('retention, which looks for the oldest recordings that it may delete', async () => {
    expect(await planOf((db) => deletableSessions(db, 5, 10))).toBe(
      'SEARCH sessions USING INDEX sessions_deletable (begin_time<?)',
    )
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

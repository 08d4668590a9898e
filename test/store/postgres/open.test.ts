/** Opening a database of a server, and what becomes of it meanwhile. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { requireOwnDatabase } from '../../../src/broker/database.ts'
import { clock } from '../../../src/commands/clock-check.ts'
import type { Config } from '../../../src/config/config.ts'
import { parseConfig } from '../../../src/config/load.ts'
import { Secret } from '../../../src/model/secret.ts'
import { SearchError } from '../../../src/search/grammar.ts'
import { parse } from '../../../src/search/parser.ts'
import { copyInto } from '../../../src/store/copy/snapshot.ts'
import { SchemaError, StoreClaimedError, StoreUnavailableError } from '../../../src/store/engine/errors.ts'
import { MIGRATIONS } from '../../../src/store/migrate.ts'
import { databaseFault, openStore } from '../../../src/store/open.ts'
import { CLAIM } from '../../../src/store/postgres/claim.ts'
import type { Store } from '../../../src/store/store.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { until } from '../../until.ts'
import { newUser } from '../fixture.ts'

let folder: string
let database: TestDatabase
const stores: Store[] = []
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-store-'))
  database = await testDatabase({ isEmpty: true })
})
afterEach(async () => {
  await Promise.all(stores.splice(0).map((store) => store.close()))
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

async function open(more: { searchMs?: number; place?: object } = {}): Promise<Store> {
  const { place, ...options } = more
  const store = await openStore({ postgres: { ...database.place, ...place }, folder, ...options })
  stores.push(store)
  return store
}

describe('a database', () => {
  it('that is empty is filled, by one of several that open it at once', async () => {
    expect(await databaseFault(database.place)).toBeUndefined()
    await Promise.all([open(), open(), open()])
    const rows = await database.sql('select version from schema_migrations order by version')
    expect(rows.map(({ version }) => Number(version))).toEqual(MIGRATIONS.map(({ version }) => version))
  })

  it('has every text in an order of bytes, whatever the locale of the database', async () => {
    await open()
    const columns =
      await database.sql(`select table_name || '.' || column_name as name from information_schema.columns
      where table_schema = 'public' and data_type = 'text' and collation_name is distinct from 'C'`)
    expect(columns).toEqual([])
  })

  it('whose server has another clock is named by the check', async () => {
    const text = JSON.stringify({ database: { url: database.url } })
    const config = parseConfig(text, join(folder, 'sallyport.yaml'), { env: {}, hostname: 'box' })
    for (const [aheadMs, level] of [
      [0, 'ok'],
      [20_000, 'warning'],
      [-20_000, 'warning'],
      [600_000, 'error'],
      [-600_000, 'error'],
    ] as const) {
      const found = (await clock(config, () => Date.now() + aheadMs)).at(-1)
      expect(found).toMatchObject({ level, subject: 'clock' })
      expect(found!.text).toMatch(/^\d+ ms apart from the clock of the database's server/)
      expect(found!.text.endsWith(': keep both in step by NTP')).toBe(level !== 'ok')
    }
  })

  it('with tables of others is refused and left alone', async () => {
    await database.sql('create table customers (id int); create table orders (id int)')
    await expect(open()).rejects.toThrow(SchemaError)
    await expect(open()).rejects.toThrow("it has tables that are not sallyport's (customers, orders)")
    expect(await databaseFault(database.place)).toContain('name an empty database')
    expect(await database.sql("select tablename from pg_tables where schemaname = 'public'")).toHaveLength(2)
  })

  it('of a newer program is refused', async () => {
    await open()
    await database.sql('insert into schema_migrations (version, applied) values (999, 0)')
    const words = 'the database has schema version 999, this program knows up to'
    await expect(open()).rejects.toThrow(words)
    expect(await databaseFault(database.place)).toContain(words)
    const copied = copyInto({ postgres: database.place }, join(folder, 'copy.db'), {
      folder,
      now: Date.now,
      signal: new AbortController().signal,
    })
    await expect(copied).rejects.toThrow(words)
  })

  it('that is read-only is refused', async () => {
    const { database: name } = database.place
    await database.sql(`alter database ${name} set default_transaction_read_only = on`)
    await expect(open()).rejects.toThrow('it is read-only')
  })

  it('of a user without rights is refused, and a wrong password is told without it', async () => {
    const role = `r${randomBytes(4).toString('hex')}`
    await database.sql(`create role ${role} login password 'right'`)
    const as = (password: string) => open({ place: { user: role, password: Secret.of(password) } })
    await expect(as('right')).rejects.toThrow('its user may make no tables')
    const wrong = await as('hunter2').catch((error: unknown) => error)
    expect(String(wrong)).toMatch(/password authentication failed/)
    expect(JSON.stringify(wrong) + String((wrong as Error).stack)).not.toContain('hunter2')
    await database.sql(`drop role ${role}`)
  })

  it('that cannot be reached is named', async () => {
    await expect(open({ place: { hosts: [{ host: '127.0.0.1', port: 1 }] } })).rejects.toThrow(
      /postgres:\/\/sallyport@127.0.0.1:1\/.*ECONNREFUSED/,
    )
  })

  it('of another bastion is refused, by its id', async () => {
    const store = await open()
    const config = { database: { postgres: database.place }, dataDir: folder } as unknown as Config
    const note = await requireOwnDatabase(config, store)
    note()
    await requireOwnDatabase(config, store)
    await store.settings.set('database.id', Buffer.from('another'))
    await expect(requireOwnDatabase(config, store)).rejects.toThrow('is the database of another bastion')
  })
})

describe('a claim', () => {
  const nobody = () => undefined

  it('is one broker’s at a time', async () => {
    const [one, two] = [await open(), await open()]
    const release = await one.claim(nobody)
    await expect(two.claim(nobody)).rejects.toThrow(StoreClaimedError)
    await expect(two.claim(nobody)).rejects.toThrow(
      /in use by another broker \(connected from 127.0.0.1 since/,
    )
    await release()
    await until('the server has seen it', () => two.claim(nobody).catch(() => undefined))
  })

  it('that was cut off is taken again, unless another broker was faster', async () => {
    const one = await open()
    const taken: Error[] = []
    await one.claim((error) => taken.push(error))
    // Other tests' databases are on the same server.
    const held = `from pg_locks where locktype = 'advisory' and granted and objid = ${CLAIM}
      and database = (select oid from pg_database where datname = current_database())`
    const cut = () => database.sql(`select pg_terminate_backend(pid) ${held}`)
    const holds = async () => (await database.sql(`select 1 ${held}`)).length > 0
    await cut()
    await until('it is taken again', async () => (await holds()) || undefined)
    expect(taken).toEqual([])
    // Another one waits for it, and the server gives it to that one.
    const waiting = new pg.Client(database.url)
    await waiting.connect()
    const has = waiting.query(`select pg_advisory_lock(${CLAIM})`)
    await until(
      'it waits',
      async () =>
        (
          await database.sql(
            'select 1 from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())',
          )
        ).length > 0 || undefined,
    )
    await cut()
    await has
    await until('the first one is told', () => taken.length > 0 || undefined)
    expect(taken[0]).toBeInstanceOf(StoreClaimedError)
    await waiting.end()
  })
})

describe('a store', () => {
  it('goes on after its connections were cut', async () => {
    const store = await open()
    await store.users.create(newUser('a'))
    const cut = `select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`
    const lost = store.transaction(async (within) => {
      await within.users.create(newUser('b'))
      await database.sql(cut)
      await within.users.create(newUser('c'))
    })
    await expect(lost).rejects.toThrow(StoreUnavailableError)
    await until('it has a connection', () => store.users.find('a').catch(() => undefined))
    expect((await store.users.list()).total).toBe(1)
  })

  it('keeps a text with U+0000, which PostgreSQL cannot', async () => {
    const store = await open()
    const { id } = await store.users.create(newUser('a', { displayName: 'x\0y' }))
    expect((await store.users.find(id))?.displayName).toBe('x\ufffdy')
    const json = JSON.stringify({ fields: { session: 'x\0y' } })
    await store.audit.append([{ sequence: 1, time: 1, code: 'x', json, hash: Uint8Array.of(0, 255) }])
    expect(await store.audit.range(1, 2)).toEqual([
      { sequence: 1, time: 1, code: 'x', json, hash: Uint8Array.of(0, 255), session: 'x\ufffdy' },
    ])
  })

  it('quotes no row in an error', async () => {
    const store = await open()
    await database.sql("alter table users add constraint short check (display_name <> 'hunter2')")
    const failed = await store.users
      .create(newUser('a', { displayName: 'hunter2' }))
      .catch((error: unknown) => error)
    expect(String(failed)).toContain('the database refused a statement')
    expect(JSON.stringify(failed) + String((failed as Error).stack)).not.toContain('hunter2')
  })

  it('refuses a search that takes too long, as SQLite one of too much text', async () => {
    const store = await open({ searchMs: 1 })
    await database.sql(`insert into devices select 'D' || n, 'd' || n, 'd' || n, 'h', repeat('ab', 2000)
      from generate_series(1, 20000) as n`)
    const page = { limit: 5, offset: 0, search: { expression: parse('description~x*y*z'), variables: {} } }
    const refused = store.devices.list(page)
    await expect(refused).rejects.toThrow(SearchError)
    await expect(refused).rejects.toMatchObject({ fault: 'value', expected: 'a narrower search' })
    const pieces = store.devices.list({ ...page, limit: -1, inPieces: true })
    await expect(pieces).rejects.toThrow(SearchError)
  })

  it('reads a long list as of one moment, and holds no connection while its client is slow', async () => {
    const store = await open()
    await database.sql(`insert into devices select 'D' || n, 'd' || n, 'd' || n, 'h', ''
      from generate_series(1000, 2499) as n`)
    const { pieces, total } = await store.devices.list({ limit: -1, offset: 0, inPieces: true })
    expect(total).toBe(1500)
    const names: string[] = []
    for await (const piece of pieces!) {
      if (names.length === 0) {
        const busy =
          "select 1 from pg_stat_activity where datname = current_database() and state like '%transaction%'"
        expect(await database.sql(busy)).toEqual([])
        await database.sql('delete from devices')
      }
      names.push(...piece.map(({ deviceName }) => deviceName))
    }
    expect(names).toEqual(Array.from({ length: 1500 }, (_, n) => `d${1000 + n}`))
  })
})

/** Copies of a server's database as a file of SQLite, and of such a file into an empty database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { copyInto, type EmptyDatabase, openEmpty } from '../../../src/store/copies.ts'
import { StoreClaimedError } from '../../../src/store/engine/errors.ts'
import { requireSound } from '../../../src/store/engine/snapshot.ts'
import { tablesOf } from '../../../src/store/engine/tables.ts'
import { openStore } from '../../../src/store/open.ts'
import { requireSame } from '../../../src/store/postgres/load.ts'
import type { Store } from '../../../src/store/store.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { newUser, smallEstate } from '../fixture.ts'

const signal = new AbortController().signal
const nobody = () => undefined
/** More than one piece. */
const EVENTS = 1100

let folder: string
let source: TestDatabase
let store: Store
/** A copy of the source. */
let file: string
const made: TestDatabase[] = []
const open: EmptyDatabase[] = []
let copies = 0

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-copies-'))
  source = await testDatabase()
  store = await openStore({ postgres: source.place, folder })
  const { user } = await smallEstate(store)
  await store.users.update(user.id, { displayName: 'Ähren, "und" \\x00 {a,NULL}' })
  await store.settings.set(
    'bytes',
    Uint8Array.from({ length: 256 }, (_, n) => n),
  )
  await store.settings.set('none', new Uint8Array())
  await source.sql(`insert into audit (sequence, time, code, json, hash)
    select n, 1800000000000 + n, 'x', '{"n":' || n || '}', decode(md5(n::text), 'hex') from generate_series(1, ${EVENTS}) as n`)
  // Removed changes, whose revisions must not come again.
  await source.sql('delete from changes where revision > 3')
  file = await copy()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((empty) => empty.close()))
  await Promise.all(made.splice(0).map((database) => database.drop()))
})
afterAll(async () => {
  await store.close()
  await source.drop()
  rmSync(folder, { recursive: true, force: true })
})

async function copy(): Promise<string> {
  const path = join(folder, `copy-${++copies}.db`)
  await copyInto({ postgres: source.place }, path, { now: Date.now, signal })
  return path
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await testDatabase({ isEmpty: true })
  made.push(database)
  return database
}

async function opened({ place }: TestDatabase): Promise<EmptyDatabase> {
  const empty = await openEmpty(place, Date.now)
  open.push(empty)
  return empty
}

async function closed(empty: EmptyDatabase): Promise<void> {
  open.splice(open.indexOf(empty), 1)
  await empty.close()
}

/** Returns a digest of each table's rows. */
async function contentOf(database: TestDatabase): Promise<Record<string, unknown>> {
  const names = await database.sql("select tablename as name from pg_tables where schemaname = 'public'")
  const content: Record<string, unknown> = {}
  for (const { name } of names) {
    const text = `select count(*) || md5(string_agg(t::text, '|' order by t::text)) as rows from "${name}" as t`
    content[String(name)] = (await database.sql(text))[0]?.['rows']
  }
  return content
}

const tablesIn = (database: TestDatabase) =>
  database.sql("select tablename from pg_tables where schemaname = 'public'")

describe('a copy', () => {
  test('has all rows and columns, and is a sound file of SQLite', async () => {
    requireSound(file)
    const sqlite = new DatabaseSync(file, { readOnly: true })
    const tables = tablesOf(sqlite)
    const columns = await source.sql(`select table_name || '.' || column_name as name
      from information_schema.columns where table_schema = 'public' order by 1`)
    expect(tables.flatMap(({ name, columns }) => columns.map((one) => `${name}.${one}`)).sort()).toEqual(
      columns.map(({ name }) => name).sort(),
    )
    expect(sqlite.prepare('select count(*) as n from audit').get()?.['n']).toBe(EVENTS)
    expect(sqlite.prepare('select max(revision) as n from changes').get()?.['n']).toBe(3)
    sqlite.close()
    const of = await openStore({ path: file })
    expect((await of.users.find('ops1'))?.displayName).toBe('Ähren, "und" \\x00 {a,NULL}')
    expect(await of.settings.get('bytes')).toEqual(await store.settings.get('bytes'))
    await of.close()
  })

  test('is as of one moment, beside somebody who writes all the time', async () => {
    const busy = new pg.Client(source.url)
    await busy.connect()
    let isOver = false
    const writing = (async () => {
      for (let n = EVENTS + 1; !isOver; n++)
        await busy.query(`begin;
          insert into audit (sequence, time, code, json, hash) values (${n}, 0, 'x', '{}', '');
          insert into settings values ('last', convert_to('${n}', 'UTF8'))
            on conflict (name) do update set value = excluded.value;
          commit`)
    })()
    try {
      const path = await copy()
      const sqlite = new DatabaseSync(path, { readOnly: true })
      const row = sqlite
        .prepare(
          "select (select max(sequence) from audit) as n, (select value from settings where name = 'last') as last",
        )
        .get()
      sqlite.close()
      expect(Number(row?.['n'])).toBeGreaterThan(EVENTS)
      expect(Buffer.from(row?.['last'] as Uint8Array).toString()).toBe(String(row?.['n']))
    } finally {
      isOver = true
      await writing
      await busy.end()
      await source.sql(
        `delete from audit where sequence > ${EVENTS}; delete from settings where name = 'last'`,
      )
    }
  })

  test('ends by its signal', async () => {
    const stop = AbortSignal.abort(new Error('interrupted'))
    const path = join(folder, 'stopped.db')
    await expect(copyInto({ postgres: source.place }, path, { now: Date.now, signal: stop })).rejects.toThrow(
      'interrupted',
    )
  })
})

describe('an empty database', () => {
  test('has what the copied one has, after the commit and not before', async () => {
    const database = await emptyDatabase()
    const empty = await opened(database)
    await empty.load(file)
    expect(await tablesIn(database)).toEqual([])
    await empty.commit()
    expect(await contentOf(database)).toEqual(await contentOf(source))
    await closed(empty)
    const of = await openStore({ postgres: database.place, folder })
    const { last } = await store.changes.kept()
    await of.users.create(newUser('later'))
    const [change, ...more] = await of.changes.after(last, 10)
    expect(more).toEqual([])
    expect(change?.revision).toBeGreaterThan(
      Number((await source.sql('select last_value as n from changes_revision_seq'))[0]?.['n']),
    )
    await of.close()
  })

  test('keeps a broker that starts meanwhile waiting, and no broker claims it', async () => {
    const database = await emptyDatabase()
    const empty = await opened(database)
    await empty.load(file)
    const starting = openStore({ postgres: database.place, folder })
    await empty.commit()
    const of = await starting
    expect(await of.users.find('ops1')).toBeDefined()
    await expect(of.claim(nobody)).rejects.toThrow(StoreClaimedError)
    await of.close()
  })

  test('stays empty when the connection is cut before the commit', async () => {
    const database = await emptyDatabase()
    const empty = await opened(database)
    await empty.load(file)
    await database.sql(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
    )
    await expect(empty.commit()).rejects.toThrow(/^postgres:\/\/.*: the database cannot be used: /)
    expect(await tablesIn(database)).toEqual([])
  })

  test('is refused if it is not empty, read-only, of others or in use', async () => {
    await expect(openEmpty(source.place, Date.now)).rejects.toThrow(
      /it is not empty \(account_credentials, accounts, api_key_groups, …\), .* make another database/,
    )
    const database = await emptyDatabase()
    await database.sql('create table customers (id int)')
    await expect(openEmpty(database.place, Date.now)).rejects.toThrow(/it is not empty \(customers\)/)
    await database.sql('drop table customers')
    const holder = await opened(database)
    await expect(openEmpty(database.place, Date.now)).rejects.toThrow(/in use by another broker/)
    await closed(holder)
    await database.sql(`alter database ${database.place.database} set default_transaction_read_only = on`)
    await expect(openEmpty(database.place, Date.now)).rejects.toThrow('it is read-only')
  })

  test('takes a text with U+0000, which it cannot keep, and is compared with the file', async () => {
    const own = await copy()
    const sqlite = new DatabaseSync(own)
    sqlite.prepare('update users set display_name = ?').run('a\0b')
    const database = await emptyDatabase()
    const empty = await opened(database)
    await empty.load(own)
    await empty.commit()
    const users = tablesOf(sqlite).find(({ name }) => name === 'users')!
    const client = new pg.Client(database.url)
    await client.connect()
    const same = async () => {
      await client.query('begin')
      await requireSame(client, users, sqlite).finally(() => client.query('rollback'))
    }
    expect(await database.sql('select display_name from users')).toEqual([{ display_name: 'a\ufffdb' }])
    for (const change of ["update users set email = 'x'", 'delete from users']) {
      await database.sql(change)
      await expect(same()).rejects.toThrow('its table users differs from what was written into it')
    }
    await client.end()
    sqlite.close()
  })
})

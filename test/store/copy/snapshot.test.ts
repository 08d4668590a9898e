/** Copies of a server's database as a file of SQLite, and of such a file into an empty database. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { EmptyDatabase } from '../../../src/store/copy/empty.ts'
import { copyInto } from '../../../src/store/copy/snapshot.ts'
import { tablesOfProgram } from '../../../src/store/copy/tables.ts'
import { StoreClaimedError } from '../../../src/store/engine/errors.ts'
import { requireSound } from '../../../src/store/engine/snapshot.ts'
import { openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { newUser, smallEstate } from '../fixture.ts'

const signal = new AbortController().signal
const nobody = () => undefined
/** More than one step. */
const EVENTS = 1100
/** No number of JavaScript: each value has to be exact. */
const TIME = '9007199254740993'

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
    select n, ${TIME}, 'x', '{"n":' || n || '}', decode(md5(n::text), 'hex') from generate_series(1, ${EVENTS}) as n`)
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
  await copyInto({ postgres: source.place }, path, { folder, now: Date.now, signal })
  return path
}

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await testDatabase({ isEmpty: true })
  made.push(database)
  return database
}

async function opened({ place }: TestDatabase): Promise<EmptyDatabase> {
  const empty = await EmptyDatabase.open(place, Date.now)
  open.push(empty)
  return empty
}

async function closed(empty: EmptyDatabase): Promise<void> {
  open.splice(open.indexOf(empty), 1)
  await empty.close()
}

/** Returns a digest of each table's rows. */
async function contentOf(database: TestDatabase): Promise<Record<string, unknown>> {
  const content: Record<string, unknown> = {}
  for (const { name } of tablesOfProgram()) {
    const text = `select count(*) || md5(string_agg(t::text, '|' order by t::text)) as rows from "${name}" as t`
    content[name] = (await database.sql(text))[0]?.['rows']
  }
  return content
}

const tablesIn = (database: TestDatabase) =>
  database.sql("select tablename from pg_tables where schemaname = 'public'")

describe('a copy', () => {
  test('has all rows and columns, and is a sound file of SQLite', async () => {
    requireSound(file)
    const sqlite = new DatabaseSync(file, { readOnly: true })
    const columns = await source.sql(`select table_name || '.' || column_name as name from
      information_schema.columns where table_schema = 'public' and table_name <> 'schema_migrations'`)
    expect(
      tablesOfProgram()
        .flatMap(({ name, columns }) => columns.map((one) => `${name}.${one.name}`))
        .sort(),
    ).toEqual(columns.map(({ name }) => name).sort())
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
    await expect(
      copyInto({ postgres: source.place }, path, { folder, now: Date.now, signal: stop }),
    ).rejects.toThrow('interrupted')
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
    await expect(EmptyDatabase.open(source.place, Date.now)).rejects.toThrow(
      /it is not empty \(account_credentials, accounts, api_key_groups, …\), .* make another database/,
    )
    const database = await emptyDatabase()
    await database.sql('create table customers (id int)')
    await expect(EmptyDatabase.open(database.place, Date.now)).rejects.toThrow(
      /it is not empty \(customers\)/,
    )
    await database.sql('drop table customers')
    const holder = await opened(database)
    await expect(EmptyDatabase.open(database.place, Date.now)).rejects.toThrow(/in use by another broker/)
    await closed(holder)
    await database.sql(`alter database ${database.place.database} set default_transaction_read_only = on`)
    await expect(EmptyDatabase.open(database.place, Date.now)).rejects.toThrow('it is read-only')
  })

  test('takes a text with U+0000, which it cannot keep, but not in the audit log', async () => {
    const own = await copy()
    const change = (text: string) => {
      const sqlite = new DatabaseSync(own)
      sqlite.exec(text)
      sqlite.close()
    }
    change("update users set display_name = 'a' || char(0) || 'b'")
    change("update audit set code = 'a' || char(0) where sequence = 7")
    const database = await emptyDatabase()
    const empty = await opened(database)
    await expect(empty.load(own)).rejects.toThrow('row 7 of the audit log has the character U+0000')
    change("update audit set code = 'x'")
    await empty.load(own)
    await empty.commit()
    expect(await database.sql('select display_name from users')).toEqual([{ display_name: 'a\ufffdb' }])
  })

  test('stays empty when a row is not what was written', async () => {
    const database = await emptyDatabase()
    await database.sql(`
      create function spoil() returns trigger language plpgsql as $$ begin new.email := 'x'; return new; end $$;
      create function meddle() returns event_trigger language plpgsql as $$ begin
        if to_regclass('users') is not null and not exists (select from pg_trigger where tgname = 'spoils') then
          create trigger spoils before insert on users for each row execute function spoil();
        end if;
      end $$;
      create event trigger meddles on ddl_command_end when tag in ('CREATE TABLE') execute function meddle()`)
    const empty = await opened(database)
    await expect(empty.load(file)).rejects.toThrow(
      /^postgres:\/\/.* differs from what was written into it: table users: the first difference is at \w{26}$/,
    )
    expect(await tablesIn(database)).toEqual([])
  })
})

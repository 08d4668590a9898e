/** Copies of a store between a file of SQLite and databases of a real server. */
import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { verifyAudit } from '../../../src/audit/verify.ts'
import type { DatabasePlace } from '../../../src/model/database.ts'
import {
  type CopyOptions,
  type CopyResult,
  copyStore,
  type Progress,
  reopenStore,
} from '../../../src/store/copy/copy.ts'
import { tablesOfProgram } from '../../../src/store/copy/tables.ts'
import { SCHEMA_VERSION } from '../../../src/store/migrate.ts'
import { databaseFault, openStore } from '../../../src/store/open.ts'
import type { Store } from '../../../src/store/store.ts'
import { sallyportCommand } from '../../peers/broker.ts'
import { type TestDatabase, testDatabase } from '../../peers/databases.ts'
import { until } from '../../until.ts'
import { newUser } from '../fixture.ts'
import { appendEvents, fill, TEXTS } from './filled.ts'

let folder: string
const databases: TestDatabase[] = []
const stores: Store[] = []
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-copy-'))
})
afterEach(async () => {
  await closeAll()
  for (const database of databases.splice(0)) await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

const closeAll = () => Promise.all(stores.splice(0).map((store) => store.close()))

const file = (name: string): { file: string } => ({ file: join(folder, name) })

async function server(): Promise<TestDatabase & { postgres: TestDatabase['place'] }> {
  const database = await testDatabase({ isEmpty: true })
  databases.push(database)
  return { ...database, postgres: database.place }
}

async function open(place: DatabasePlace): Promise<Store> {
  const store = await openStore('file' in place ? { path: place.file } : { ...place, folder })
  stores.push(store)
  // Without a statement the store would not close its file.
  await store.changes.kept()
  return store
}

async function filled(place: DatabasePlace, more?: (store: Store) => Promise<void>): Promise<void> {
  const store = await open(place)
  await fill(store)
  await more?.(store)
  await closeAll()
}

const BY = { actor: { user: 'local:test', uid: 1 }, now: () => 1000 }

const copy = (from: DatabasePlace, to: DatabasePlace, more: Partial<CopyOptions> = {}): Promise<CopyResult> =>
  copyStore({ from, to, ...BY, ...more })

const digestsOf = ({ tables }: CopyResult) =>
  tables.filter(({ name }) => name !== 'audit').map(({ name, rows, digest }) => `${name} ${rows} ${digest}`)

/** Opens a copy as a broker does, and looks at what it is about to work with. */
async function requireWhole(place: DatabasePlace, before: CopyResult): Promise<void> {
  const store = await open(place)
  const users = (await store.users.list({ limit: -1, offset: 0 })).items
  expect(users.filter(({ userName }) => /^user\d/.test(userName)).map(({ email }) => email)).toEqual(TEXTS)
  const last = await store.audit.last()
  expect(JSON.parse(last!.json)).toMatchObject({
    code: 'store.copy',
    fields: { user: 'local:test', digest: before.audit.head },
  })
  expect(await verifyAudit(store.audit)).toMatchObject({ rows: before.audit.rows + 1 })
  const kept = await store.changes.kept()
  await store.users.create(newUser('later'))
  // Not one that a removed change had, and none of the copy's own.
  expect((await store.changes.after(kept.last, 10)).map(({ kind }) => kind)).toEqual(['user'])
  await store.users.remove((await store.users.find('later'))!.id)
  await closeAll()
}

const refusal = (place: DatabasePlace) =>
  open(place).then(
    () => 'opened',
    (error: Error) => error.message,
  )

describe('a copy', () => {
  it('has each table with rows, or a new one is not tested here (filled.ts)', async () => {
    await filled(file('a.db'))
    const { tables, fault } = await copy(file('a.db'), file('b.db'))
    expect(fault).toBeUndefined()
    expect(tables.filter(({ rows }) => rows === 0)).toEqual([])
    const database = new DatabaseSync(join(folder, 'b.db'))
    const names = database.prepare("select name from sqlite_schema where type = 'table'").all()
    database.close()
    const others = ['schema_migrations', 'sqlite_sequence']
    expect([...tables.map(({ name }) => name), ...others].sort()).toEqual(
      names.map(({ name }) => name).sort(),
    )
    expect(tablesOfProgram().filter(({ key }) => key.length === 0)).toEqual([])
    expect(statSync(join(folder, 'b.db')).mode & 0o777).toBe(0o600)
  })

  it('from a file to a server and back has the same rows, and a log that goes on', async () => {
    await filled(file('a.db'))
    const [b, d] = [await server(), await server()]
    const first = await copy(file('a.db'), b)
    expect(first).toMatchObject({ isResumed: false, replaced: 1 })
    expect(first.fault ?? first.audit.fault).toBeUndefined()
    await requireWhole(b, first)
    const reopened = await open(b)
    expect(await reopened.sessions.find('S1')).toMatchObject({ reason: 'cut\ufffdoff' })
    await closeAll()
    await requireWhole(file('c.db'), await copy(b, file('c.db')))
    const last = await copy(file('c.db'), d)
    // Each `requireWhole` has made and removed a user, which the log of changes has.
    const but = (result: CopyResult) => digestsOf(result).filter((text) => !text.startsWith('changes'))
    expect(but(last)).toEqual(but(first))
    const again = await server()
    expect(digestsOf(await copy(d, again))).toEqual(digestsOf(last))
    await requireWhole(again, {
      ...last,
      audit: { ...last.audit, rows: last.audit.rows + 1, head: await headOf(d) },
    })
  })

  /** Returns the hash of the log's last row, in a store that was moved. */
  async function headOf(database: TestDatabase): Promise<string> {
    const [row] = await database.sql(
      "select encode(hash, 'hex') as hash from audit order by sequence desc limit 1",
    )
    return String(row?.['hash'])
  }

  it('leaves the source unused, until it is opened again', async () => {
    await filled(file('a.db'))
    const to = await server()
    await copy(file('a.db'), to)
    expect(await refusal(file('a.db'))).toMatch(
      /a\.db: its data were copied to postgres:\/\/sallyport@.* at 1970-01-01T00:00:01.000Z, and are used there/,
    )
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('are used there')
    expect(existsSync(join(folder, 'b.db'))).toBe(false)
    expect(await reopenStore(file('a.db'), BY)).toBe(true)
    expect(await reopenStore(file('a.db'), BY)).toBe(false)
    const store = await open(file('a.db'))
    // They may have been used in the copy.
    expect(await store.tickets.waiting(0)).toEqual([])
    expect(await store.signIns.find(Uint8Array.of(1, 2))).toBeUndefined()
    expect(JSON.parse((await store.audit.last())!.json)).toMatchObject({ code: 'store.reopen' })
    expect((await verifyAudit(store.audit)).fault).toBeUndefined()
  })
})

/** Returns a function for `onProgress` that does the work at the first report of a step. */
function once(step: Progress['step'], work: () => Promise<unknown>): (progress: Progress) => Promise<void> {
  let isDone = false
  return async (progress) => {
    if (isDone || progress.step !== step) return
    isDone = true
    await work()
  }
}

describe('an interrupted copy', () => {
  const EVENTS = 6000
  const NO_END = `create function no() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
    create trigger no before delete on settings for each row execute function no()`

  it('that was killed goes on where it stood, and no broker starts on it before', async () => {
    await filled(file('a.db'), (store) => appendEvents(store, EVENTS, 1500))
    const to = await server()
    const args = ['store', 'copy', '--from', `sqlite:${join(folder, 'a.db')}`, '--to', to.url]
    const child = spawn(...sallyportCommand(args), { stdio: 'ignore' })
    const ended = new Promise<NodeJS.Signals | null>((resolve) => child.once('exit', (_, by) => resolve(by)))
    const copied = async () => {
      const rows = await to.sql('select count(*) as n from audit').catch(() => [])
      return Number(rows[0]?.['n'] ?? 0)
    }
    await until('some of the audit log', async () => ((await copied()) > 0 ? true : undefined), 30_000)
    child.kill('SIGKILL')
    expect(await ended).toBe('SIGKILL')
    const before = await copied()
    expect(before).toBeLessThan(EVENTS)
    const words = `it is a copy of ${join(folder, 'a.db')} that is not finished`
    expect(await refusal(to)).toContain(words)
    expect(await databaseFault(to.place)).toContain(words)
    await expect(copy(to, file('b.db'))).rejects.toThrow('is itself an unfinished copy')
    await expect(copy(file('other.db'), to)).rejects.toThrow('there is no database')
    const seen: number[] = []
    const result = await copy(file('a.db'), to, {
      onProgress: ({ step, table, rows }) => {
        if (step === 'copy' && table === 'audit') seen.push(rows)
      },
    })
    expect(result).toMatchObject({ isResumed: true })
    expect(result.fault).toBeUndefined()
    expect(seen.at(-1)! + before).toBe(EVENTS + 20)
    await requireWhole(to, result)
  })

  it('whose connection was lost goes on; one whose source was used begins anew', async () => {
    const from = await server()
    await filled(from, (store) => appendEvents(store, 200))
    const cut = async () => {
      await from.sql(
        `select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()`,
      )
    }
    const once = copy(from, file('b.db'), {
      onProgress: async ({ table }) => {
        if (table === 'sessions') await cut()
      },
    })
    await expect(once).rejects.toThrow(/postgres:\/\/.*the same command goes on where it stood/)
    expect(await refusal(file('b.db'))).toContain('not finished')
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('there is no database')
    await filled(file('a.db'))
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('has an unfinished copy of postgres://')
    const store = await open(from)
    await store.users.remove((await store.users.find('user1'))!.id)
    await appendEvents(store, 1)
    await closeAll()
    const result = await copy(from, file('b.db'))
    expect(result).toMatchObject({ isResumed: false })
    expect(result.fault).toBeUndefined()
    expect(await (await open(file('b.db'))).users.find('user1')).toBeUndefined()
  })

  it('between the marks at its end goes on, and no broker may use either', async () => {
    await filled(file('a.db'))
    const to = await server()
    const broken = copy(file('a.db'), to, { onProgress: once('compare', () => to.sql(NO_END)) })
    await expect(broken).rejects.toThrow(/no \(P0001\); the copy is not finished/)
    expect(await refusal(file('a.db'))).toContain('are used there')
    expect(await refusal(to)).toContain('not finished')
    await to.sql('drop trigger no on settings')
    const result = await copy(file('a.db'), to)
    expect(result).toMatchObject({ isResumed: true })
    await requireWhole(to, result)
  })
})

describe('a difference', () => {
  it('is found and named, no broker starts on the copy, and the next run begins anew', async () => {
    await filled(file('a.db'))
    const to = await server()
    const differing = async (statement: string) => {
      const result = await copy(file('a.db'), to, { onProgress: once('compare', () => to.sql(statement)) })
      expect(result.isResumed).toBe(false)
      return result.fault
    }
    expect(await differing("update audit set json = replace(json, 'S1', 'S3') where sequence = 7")).toBe(
      'table audit: the first difference is at 7',
    )
    expect(await differing("delete from uploads where session_id = 'S1'")).toBe(
      'table uploads: of 1 rows it has 0, the first difference is at S1',
    )
    expect(await differing("insert into settings values ('zzz', 'z')")).toMatch(
      /^table settings: of \d rows it has \d, the first difference is at zzz$/,
    )
    expect(await differing("select setval(pg_get_serial_sequence('changes', 'revision'), 1)")).toBe(
      'table changes: its counter differs',
    )
    const changed = await differing("update users set email = 'NULL' where user_name = 'ops1'")
    expect(changed).toMatch(/^table users: the first difference is at \w{26}$/)
    expect(await refusal(to)).toContain(`that differs from it (${changed})`)
    expect(await refusal(file('a.db'))).toBe('opened')
    await closeAll()
    const again = await copy(file('a.db'), to)
    expect(again).toMatchObject({ isResumed: false })
    expect(again.fault).toBeUndefined()
  })

  it('of the chain, which the source has too, is reported, and carried as it is', async () => {
    await filled(file('a.db'))
    const database = new DatabaseSync(join(folder, 'a.db'))
    database.exec("update audit set json = replace(json, 'S1', 'S3'), session = 'S3' where sequence = 7")
    database.close()
    const { fault, audit } = await copy(file('a.db'), file('b.db'))
    expect(fault).toBeUndefined()
    expect(audit.fault).toMatchObject({ code: 'changed_event', sequence: 7 })
  })
})

describe('refused is', () => {
  it('a store that a broker uses', async () => {
    await filled(file('a.db'))
    const running = await open(file('a.db'))
    const to = await server()
    await expect(copy(file('a.db'), to)).rejects.toThrow('a.db is in use: stop the broker')
    expect((await running.users.list()).total).toBeGreaterThan(0)
    await closeAll()
    const other = await open(to)
    // As a command does.
    await other.users.list()
    await expect(copy(file('a.db'), to)).rejects.toThrow(
      /is in use \(connected from 127.0.0.1 since .*\): stop the broker/,
    )
    const release = await other.claim(() => undefined)
    await expect(copy(file('a.db'), to)).rejects.toThrow('is in use by another broker')
    await expect(copy(to, file('b.db'))).rejects.toThrow('is in use by another broker')
    await release()
    expect(existsSync(join(folder, 'b.db'))).toBe(false)
  })

  it('a broker, or a change, while it is copied', async () => {
    const from = await server()
    await filled(from)
    await filled(file('a.db'))
    let tried = ''
    await copy(file('a.db'), file('b.db'), {
      onProgress: once('copy', async () => {
        tried = await refusal(file('a.db'))
      }),
    })
    expect(tried).toContain('a.db is in use by a process that is alone with it')
    let writing: Promise<unknown> | undefined
    const result = await copy(from, file('c.db'), {
      onProgress: once('copy', async () => {
        writing = from.sql("update users set email = 'late'")
        await until('a writer that waits', async () => {
          const waiting = await from.sql('select 1 from pg_locks where not granted')
          return waiting.length > 0 ? true : undefined
        })
      }),
    })
    await writing
    expect(result.fault).toBeUndefined()
    const store = await open(file('c.db'))
    expect((await store.users.find('ops1'))?.email).toBe('')
  })

  it('a place with something else in it', async () => {
    await filled(file('a.db'))
    const to = await server()
    await to.sql('create table customers (id int)')
    await expect(copy(file('a.db'), to)).rejects.toThrow("has tables that are not sallyport's (customers)")
    const own = await server()
    await filled(own)
    await expect(copy(file('a.db'), own)).rejects.toThrow(
      /has data already \(in .*…\), and a copy writes over nothing/,
    )
    writeFileSync(join(folder, 'text.db'), 'x'.repeat(10_000))
    await expect(copy(file('a.db'), file('text.db'))).rejects.toThrow(/text\.db: file is not a database/)
    await expect(copy(file('a.db'), { file: join(folder, 'none', 'b.db') })).rejects.toThrow(
      'there is no folder',
    )
    await expect(copy(file('a.db'), file('a.db'))).rejects.toThrow('is both --from and --to')
    await own.sql('create table extra (id int primary key)')
    await expect(copy(own, file('b.db'))).rejects.toThrow(
      "has extra.id, which is not sallyport's: a copy would not be whole",
    )
    expect(await refusal(file('a.db'))).toBe('opened')
  })

  it('a store of another version, and one that nobody has used', async () => {
    await filled(file('a.db'))
    const change = (text: string) => {
      const database = new DatabaseSync(join(folder, 'a.db'))
      database.exec(text)
      database.close()
    }
    change(`insert into schema_migrations values (${SCHEMA_VERSION + 1}, 0)`)
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow('use the newer program')
    change(`delete from schema_migrations where version >= ${SCHEMA_VERSION}`)
    await expect(copy(file('a.db'), file('b.db'))).rejects.toThrow(
      "start this version's broker on it once, and stop it",
    )
    await (await open(file('new.db'))).users.list()
    await closeAll()
    await expect(copy(file('new.db'), file('b.db'))).rejects.toThrow('no broker has used')
    await expect(copy(await server(), file('b.db'))).rejects.toThrow('has no store: there is nothing to copy')
    expect(existsSync(join(folder, 'b.db'))).toBe(false)
  })
})

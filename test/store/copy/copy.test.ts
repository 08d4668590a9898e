/** Copies of a store between a file of SQLite and databases of a real server. */
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, it } from 'vitest'
import { verifyAudit } from '../../../src/audit/verify.ts'
import { type CopyResult, reopenStore } from '../../../src/store/copy/copy.ts'
import { tablesOfProgram } from '../../../src/store/copy/tables.ts'
import { SCHEMA_VERSION } from '../../../src/store/migrate.ts'
import type { TestDatabase } from '../../peers/databases.ts'
import { until } from '../../until.ts'
import {
  BY,
  closeAll,
  copy,
  file,
  filled,
  once,
  open,
  pathOf,
  refusal,
  requireWhole,
  server,
  usePlaces,
} from './places.ts'

/** Four copies, each opened as a broker does: seconds, and more on a busy machine. */
const SLOW = { timeout: 300_000 }

usePlaces()

const digestsOf = ({ tables }: CopyResult) =>
  tables.filter(({ name }) => name !== 'audit').map(({ name, rows, digest }) => `${name} ${rows} ${digest}`)

describe('a copy', () => {
  it('has each table with rows, or a new one is not tested here (filled.ts)', async () => {
    await filled(file('a.db'))
    const { tables, fault } = await copy(file('a.db'), file('b.db'))
    expect(fault).toBeUndefined()
    expect(tables.filter(({ rows }) => rows === 0)).toEqual([])
    const database = new DatabaseSync(pathOf('b.db'))
    const names = database.prepare("select name from sqlite_schema where type = 'table'").all()
    database.close()
    const others = ['schema_migrations', 'sqlite_sequence']
    expect([...tables.map(({ name }) => name), ...others].sort()).toEqual(
      names.map(({ name }) => name).sort(),
    )
    expect(tablesOfProgram().filter(({ key }) => key.length === 0)).toEqual([])
    expect(statSync(pathOf('b.db')).mode & 0o777).toBe(0o600)
  })

  it('from a file to a server and back has the same rows, and a log that goes on', SLOW, async () => {
    await filled(file('a.db'))
    const [b, d] = [await server(true), await server()]
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
    expect(existsSync(pathOf('b.db'))).toBe(false)
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
    const database = new DatabaseSync(pathOf('a.db'))
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
    expect(existsSync(pathOf('b.db'))).toBe(false)
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
    const to = await server(true)
    await to.sql('create table customers (id int)')
    await expect(copy(file('a.db'), to)).rejects.toThrow("has tables that are not sallyport's (customers)")
    const own = await server()
    await filled(own)
    await expect(copy(file('a.db'), own)).rejects.toThrow(
      /has data already \(in .*…\), and a copy writes over nothing/,
    )
    writeFileSync(pathOf('text.db'), 'x'.repeat(10_000))
    await expect(copy(file('a.db'), file('text.db'))).rejects.toThrow(/text\.db: file is not a database/)
    await expect(copy(file('a.db'), { file: pathOf('none/b.db') })).rejects.toThrow('there is no folder')
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
      const database = new DatabaseSync(pathOf('a.db'))
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
    await expect(copy(await server(true), file('b.db'))).rejects.toThrow(
      'has no store: there is nothing to copy',
    )
    expect(existsSync(pathOf('b.db'))).toBe(false)
  })
})

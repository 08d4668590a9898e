import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NodeSqliteDialect } from '../../../src/store/engine/dialect.ts'
import { SchemaError } from '../../../src/store/engine/errors.ts'
import { ReadingThread } from '../../../src/store/engine/reading-thread.ts'
import { WalSync } from '../../../src/store/engine/wal-sync.ts'
import { migrate } from '../../../src/store/migrate.ts'

/** A disk that reports each sync, and completes it on request. */
class SlowDisk extends WalSync {
  asked = 0
  readonly done = Promise.withResolvers<void>()
  override async sync(): Promise<void> {
    this.asked++
    await this.done.promise
    await super.sync()
  }
}

let folder: string
let database: DatabaseSync
let db: Kysely<{ numbers: { n: number } }>
const pathOf = () => join(folder, 'test.db')
const kyselyOn = (wal: WalSync) =>
  new Kysely<{ numbers: { n: number } }>({
    dialect: new NodeSqliteDialect(database, wal, new ReadingThread({ path: ':memory:' })),
  })
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  database = new DatabaseSync(pathOf())
  database.exec('pragma journal_mode = wal')
  database.exec('pragma synchronous = normal')
  database.exec('create table numbers (n integer not null)')
  db = kyselyOn(new WalSync(pathOf()))
})
afterEach(async () => {
  await db.destroy()
  rmSync(folder, { recursive: true })
})

const numbers = async () =>
  (await db.selectFrom('numbers').select('n').orderBy('n').execute()).map((row) => row.n)

describe('a transaction', () => {
  it('lets nobody in while it awaits something', async () => {
    const order: string[] = []
    const slow = db.transaction().execute(async (tx) => {
      await tx.insertInto('numbers').values({ n: 1 }).execute()
      await sleep(20)
      order.push('transaction')
      await tx.insertInto('numbers').values({ n: 2 }).execute()
    })
    const others = [1, 2, 3].map(async (i) => {
      const seen = await numbers()
      order.push(`reader ${i}`)
      return seen
    })
    await slow
    expect(await Promise.all(others)).toEqual([
      [1, 2],
      [1, 2],
      [1, 2],
    ])
    expect(order).toEqual(['transaction', 'reader 1', 'reader 2', 'reader 3'])
  })

  it('leaves nothing when it fails, and the queue goes on', async () => {
    const failing = db.transaction().execute(async (tx) => {
      await tx.insertInto('numbers').values({ n: 1 }).execute()
      await sql`select no_such_function()`.execute(tx)
    })
    const next = db.transaction().execute((tx) => tx.insertInto('numbers').values({ n: 2 }).execute())
    await expect(failing).rejects.toThrow('no_such_function')
    await next
    expect(await numbers()).toEqual([2])
  })
})

it('many different statements are not kept for ever, and go on working', async () => {
  for (let i = 0; i < 1200; i++) await sql.raw(`insert into numbers values (${i})`).execute(db)
  expect(await numbers()).toHaveLength(1200)
})

describe('migrations', () => {
  const first = { version: 1, sql: 'create table a (x integer)' }
  const second = { version: 2, sql: 'alter table a add column y integer' }

  it('are applied once each, in order, when a newer program opens the database', () => {
    migrate(database, 5, [first])
    migrate(database, 6, [first, second])
    migrate(database, 7, [first, second])
    expect(database.prepare('select version, applied from schema_migrations').all()).toMatchObject([
      { version: 1, applied: 5 },
      { version: 2, applied: 6 },
    ])
    expect(() => migrate(database, 8, [first])).toThrow(SchemaError)
  })

  it('leave the version before when one fails', () => {
    const broken = { version: 2, sql: 'create table b (x integer); create table a (x integer)' }
    expect(() => migrate(database, 5, [first, broken])).toThrow('already exists')
    expect(() => database.prepare('select * from b')).toThrow('no such table')
    migrate(database, 6, [first, second])
    expect(database.prepare('select y from a').all()).toEqual([])
  })
})

describe('what was written', () => {
  it.each([
    ['by a statement', () => db.insertInto('numbers').values({ n: 1 }).execute()],
    [
      'by a transaction',
      () => db.transaction().execute((tx) => tx.insertInto('numbers').values({ n: 1 }).execute()),
    ],
  ])('%s is answered for when it is on the disk; others go on meanwhile', async (_, write) => {
    const disk = new SlowDisk(pathOf())
    db = kyselyOn(disk)
    let answered = false
    const written = write().then(() => {
      answered = true
    })
    expect(await numbers()).toEqual([1])
    await sleep(20)
    expect({ answered, asked: disk.asked }).toEqual({ answered: false, asked: 1 })
    disk.done.resolve()
    await written
  })

  it('needs no disk to be read', async () => {
    const disk = new SlowDisk(pathOf())
    db = kyselyOn(disk)
    await numbers()
    expect(disk.asked).toBe(0)
  })

  it('that did not get to the disk is the last: nothing more is written', async () => {
    db = kyselyOn(new WalSync(join(folder, 'other.db')))
    const insert = () => db.insertInto('numbers').values({ n: 1 }).execute()
    await expect(insert()).rejects.toThrow('could not be written to the disk (ENOENT')
    await expect(insert()).rejects.toThrow('start again')
    await expect(
      db.transaction().execute((tx) => tx.insertInto('numbers').values({ n: 2 }).execute()),
    ).rejects.toThrow('start again')
    expect(await numbers()).toEqual([1])
  })

  it('behind what did not get to the disk counts as lost, too, though its own part got there', async () => {
    db = kyselyOn(new WalSync(join(folder, 'other.db')))
    const first = db.insertInto('numbers').values({ n: 1 }).execute()
    const second = db.transaction().execute(async (tx) => {
      await expect(first).rejects.toThrow('ENOENT')
      writeFileSync(join(folder, 'other.db-wal'), '')
      await tx.insertInto('numbers').values({ n: 2 }).execute()
    })
    await expect(second).rejects.toThrow('start again')
  })

  it('by many at once is all there', async () => {
    await Promise.all([...Array(20).keys()].map((n) => db.insertInto('numbers').values({ n }).execute()))
    expect(await numbers()).toHaveLength(20)
  })
})

import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { Kysely, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { NodeSqliteDialect } from '../../src/store/dialect.ts'
import { SchemaError } from '../../src/store/errors.ts'
import { migrate } from '../../src/store/migrations/migrate.ts'

let database: DatabaseSync
let db: Kysely<{ numbers: { n: number } }>
beforeEach(() => {
  database = new DatabaseSync(':memory:')
  database.exec('create table numbers (n integer not null)')
  db = new Kysely({ dialect: new NodeSqliteDialect(database) })
})
afterEach(() => db.destroy())

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

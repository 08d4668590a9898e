/** Queries that are compiled once. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Kysely } from 'kysely'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { NodeSqliteDialect } from '../../../src/store/engine/dialect.ts'
import { keptQuery } from '../../../src/store/engine/kept-query.ts'
import { ReadingThread } from '../../../src/store/engine/reading-thread.ts'
import { WalSync } from '../../../src/store/engine/wal-sync.ts'
import { migrate } from '../../../src/store/migrate.ts'
import type { Db, Schema } from '../../../src/store/migrations/schema.ts'

let folder: string
let db: Db
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  const path = join(folder, 'test.db')
  const database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal')
  migrate(database, 0)
  db = new Kysely<Schema>({
    dialect: new NodeSqliteDialect(database, new WalSync(path), new ReadingThread({ path })),
  })
  const values = [...'abc'].map((name) => ({ name, value: Uint8Array.of(1) }))
  await db.insertInto('settings').values(values).execute()
})
afterEach(async () => {
  await db.destroy()
  rmSync(folder, { recursive: true, force: true })
})

it('are built at the first call, and run with the values of each', async () => {
  let built = 0
  const between = keptQuery((db: Db, from: string, to: string) => {
    built++
    return db
      .selectFrom('settings')
      .select('name')
      .where('name', '>=', from)
      .where('name', '<>', 'b')
      .where('name', '<=', to)
      .orderBy('name')
  })
  const names = async (from: string, to: string) => (await between(db, from, to)).map((row) => row.name)
  expect(await names('a', 'b')).toEqual(['a'])
  expect(await names('b', 'c')).toEqual(['c'])
  expect(built).toBe(1)
})

it('run within the transaction that they are called with', async () => {
  const insert = keptQuery((db: Db, name: string, value: Uint8Array) =>
    db.insertInto('settings').values({ name, value }),
  )
  const count = keptQuery((db: Db) => db.selectFrom('settings').select('name'))
  const failure = db.transaction().execute(async (tx) => {
    await insert(tx, 'd', Uint8Array.of(4))
    expect(await count(tx)).toHaveLength(4)
    throw new Error('no')
  })
  await expect(failure).rejects.toThrow('no')
  expect(await count(db)).toHaveLength(3)
})

import { copyFileSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Checkpoints, SYNCS } from '../../../src/store/engine/checkpoints.ts'
import { WalSync } from '../../../src/store/engine/wal-sync.ts'
import { until } from '../../until.ts'

let folder: string
let path: string
let database: DatabaseSync
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-checkpoints-'))
  path = join(folder, 'a.db')
  database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal; pragma synchronous = normal; pragma wal_autocheckpoint = 0')
  database.exec('create table noted (number integer primary key)')
})
afterEach(() => {
  database.close()
  rmSync(folder, { recursive: true, force: true })
})

/** Returns how many rows the database's own file has, without its log; none for a copy made while it is written. */
function rowsInFile(): number {
  const copy = join(folder, 'copy.db')
  copyFileSync(path, copy)
  const alone = new DatabaseSync(copy)
  try {
    if (alone.prepare('pragma integrity_check').get()!.integrity_check !== 'ok') return 0
    const { tables } = alone.prepare("select count(*) tables from sqlite_schema where name = 'noted'").get()!
    return tables === 0 ? 0 : Number(alone.prepare('select count(*) rows from noted').get()!.rows)
  } catch {
    return 0
  } finally {
    alone.close()
    for (const end of ['', '-wal', '-shm']) rmSync(`${copy}${end}`, { force: true })
  }
}

describe('the log of the database', () => {
  test('is written back by a thread after some commits, again and again', async () => {
    const wal = new WalSync(path, new Checkpoints(path))
    const insert = database.prepare('insert into noted default values')
    for (let commits = 1; commits < SYNCS; commits++) {
      insert.run()
      await wal.sync()
    }
    expect(rowsInFile()).toBe(0)
    for (const rows of [SYNCS, 2 * SYNCS]) {
      await until(`${rows} rows in the file`, async () => {
        insert.run()
        await wal.sync()
        return rowsInFile() >= rows || undefined
      })
    }
    await wal.close()
  })

  test('is left alone without one', async () => {
    const wal = new WalSync(path)
    const insert = database.prepare('insert into noted default values')
    for (let commits = 0; commits < 3 * SYNCS; commits++) {
      insert.run()
      await wal.sync()
    }
    expect(rowsInFile()).toBe(0)
    await wal.close()
  })

  test('is written back by the next thread when one has died', async () => {
    const later = join(folder, 'later')
    const wal = new WalSync(path, new Checkpoints(join(later, 'a.db')))
    const insert = database.prepare('insert into noted default values')
    for (let commits = 0; commits < 2 * SYNCS; commits++) {
      insert.run()
      await wal.sync()
    }
    expect(rowsInFile()).toBe(0)
    symlinkSync(folder, later)
    await until('the next thread', async () => {
      insert.run()
      await wal.sync()
      return rowsInFile() > 2 * SYNCS || undefined
    })
    await wal.close()
  })
})

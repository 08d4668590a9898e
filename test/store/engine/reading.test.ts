/** The thread that reads long lists, and the log of its database. */
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ReadingThread } from '../../../src/store/engine/reading-thread.ts'

const MIB = 1024 * 1024
const ROWS = 4000
const LIST = 'select n, text from list order by n'

let folder: string
let path: string
let database: DatabaseSync
let thread: ReadingThread
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sallyport-test-'))
  path = join(folder, 'test.db')
  database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal')
  database.exec('pragma synchronous = normal')
  database.exec('create table list (n integer primary key, text text not null)')
  database.exec(
    `insert into list with recursive numbers (n) as (values (1) union all select n + 1 from numbers where n < ${ROWS})
       select n, hex(randomblob(100)) from numbers`,
  )
  thread = new ReadingThread({ path })
})
afterEach(async () => {
  await thread.close()
  database.close()
  rmSync(folder, { recursive: true })
})

describe('the reading thread', () => {
  it('writes the log back before it answers, so that the next write begins it anew', async () => {
    database.exec('pragma wal_autocheckpoint = 0')
    const write = () => database.exec('update list set text = hex(randomblob(100))')
    const length = () => statSync(`${path}-wal`).size
    while (length() < 8 * MIB) write()
    const before = length()
    const lists = Array.from({ length: 8 }, () => thread.rows(LIST, [], 50))
    // Read only the beginning of each.
    for (const rows of await Promise.all(lists.map((list) => list.next())))
      expect(rows.value).toHaveLength(50)
    for (let n = 0; n < 3; n++) write()
    expect(length()).toBe(before)
    for (const list of lists) await list.return(undefined)
  })

  it('tells what is wrong with a query before any row, and reads the next list', async () => {
    await expect(thread.rows('select nothing from list', [], 50).next()).rejects.toThrow('nothing')
    let count = 0
    for await (const rows of thread.rows(LIST, [], 50)) count += rows.length
    expect(count).toBe(ROWS)
  })
})

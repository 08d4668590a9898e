/** Content of a backup beside a working broker, and places in which none is made. */
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { verifyStream } from '../../recordings/container/verify.ts'
import { findRecording } from '../../recordings/storage/catalog.ts'
import { readList, sessionOf } from '../../src/backup/list.ts'
import { RecordingBackup } from '../../src/backup/recordings.ts'
import { openFoundation } from '../../src/broker/foundation.ts'
import { recoverSessions } from '../../src/recording-service/recover.ts'
import { readRestoreNote } from '../../src/recording-service/restored.ts'
import { copyDatabase } from '../../src/store/engine/snapshot.ts'
import { rotateMasterKeyFile } from '../../src/vault/key-file.ts'
import { filesWith } from '../e2e/recorded.ts'
import { inPieces } from '../recordings/support.ts'
import { databaseFile, type House, openHouse, restore, SESSIONS } from './setting.ts'

let house: House
beforeEach(async () => {
  house = await openHouse()
})
afterEach(() => house.close())

const [FIRST, SECOND] = SESSIONS
const folderOf = (backup: string, session: string) =>
  join(house.folder, backup, 'recordings', '2026', '11', '20', session)
const listed = async (backup: string) => {
  const found = []
  for await (const one of readList(join(house.folder, backup, 'recordings.jsonl'))) found.push(one)
  return found
}
const eventsOf = async (code: string) => {
  const rows = await house.foundation.store.audit.range(0, 1000)
  return rows.filter((row) => row.code === code).map(({ json }) => JSON.parse(json).fields)
}

describe('a folder is refused, and nothing is made in it, when', () => {
  test.each<[string, (path: string) => void, RegExp]>([
    ['it holds something', (path) => writeFileSync(join(path, 'x'), ''), /is not empty \(x\)/],
    ['it holds a backup', (path) => writeFileSync(join(path, 'manifest.json'), ''), /holds a backup already/],
    ['others can read it', (path) => chmodSync(path, 0o750), /is open to other users \(mode 750/],
  ])('%s', async (_, change, message) => {
    const path = join(house.folder, 'there')
    mkdirSync(path, { mode: 0o700 })
    change(path)
    const before = readdirSync(path)
    await expect(house.backup('there')).rejects.toThrow(message)
    expect(readdirSync(path)).toEqual(before)
  })

  test('it lies in what it is a copy of, by whatever way', async () => {
    symlinkSync(house.config.dataDir, join(house.folder, 'link'))
    mkdirSync(join(house.config.dataDir, 'there'), { mode: 0o700 })
    symlinkSync(join(house.config.dataDir, 'there'), join(house.folder, 'straight'))
    for (const name of ['data/b', 'data/recordings/b', 'link/b', 'straight']) {
      await expect(house.backup(name)).rejects.toThrow(/and would be lost with it/)
    }
    await expect(house.backup('nowhere/b')).rejects.toThrow(
      /there is no folder .*nowhere to make the backup in/,
    )
  })
})

test('an empty folder is taken as it is', async () => {
  mkdirSync(join(house.folder, 'empty'), { mode: 0o700 })
  await house.backup('empty')
  expect(existsSync(join(house.folder, 'empty', 'manifest.json'))).toBe(true)
})

describe('of a session that runs', () => {
  test('it has the whole records, though one is just being written, and the start seals them', async () => {
    const writer = await house.session(FIRST, 'running')
    await writer.flush()
    const { directory } = (await findRecording(house.foundation.recordingService.root, FIRST))!
    const path = join(directory, 'session.rec')
    const whole = statSync(path).size
    appendFileSync(path, Buffer.alloc(10))
    await house.backup('b')
    expect(await listed('b')).toMatchObject([{ state: 'open', size: whole, digest: expect.any(String) }])
    expect(statSync(join(folderOf('b', FIRST), 'session.rec')).size).toBe(whole)

    const config = house.elsewhere('again')
    await restore(config, join(house.folder, 'b'))
    const foundation = await openFoundation(config)
    const { store, recordingService } = foundation
    const restored = (await readRestoreNote(store.settings))!
    const deps = { ...foundation, audit: house.audit, now: Date.now, restored }
    expect(await recoverSessions(deps)).toEqual([expect.stringContaining('what came after that is missing')])
    const sealed = readFileSync(
      join((await findRecording(recordingService.root, FIRST))!.directory, 'session.rec'),
    )
    expect((await verifyStream(inPieces(sealed))).state).toBe('recovered')
    await store.close()
  })

  test('that is damaged it has all as it is, for whoever looks into it', async () => {
    await (await house.session(FIRST, 'running')).flush()
    const { directory } = (await findRecording(house.foundation.recordingService.root, FIRST))!
    const path = join(directory, 'session.rec')
    const bytes = readFileSync(path)
    bytes[bytes.length - 20] = (bytes[bytes.length - 20] ?? 0) ^ 1
    writeFileSync(path, bytes)
    await house.backup('b')
    expect(readFileSync(join(folderOf('b', FIRST), 'session.rec'))).toEqual(bytes)
  })

  test('without its recording it has the key', async () => {
    await (await house.session(FIRST, 'running')).flush()
    await house.backup('b', { withRecordings: false })
    expect(readdirSync(folderOf('b', FIRST))).toEqual(['key.age'])
  })
})

describe('while recordings change', () => {
  /** Runs both passes, with `between` at the time of the database's copy. */
  async function copied(between: () => Promise<void>): Promise<string[]> {
    const target = join(house.folder, 'target')
    mkdirSync(target, { mode: 0o700 })
    const { recordingService, store } = house.foundation
    const { signal } = new AbortController()
    const backup = await RecordingBackup.begin({
      root: recordingService.root,
      target,
      containers: true,
      signal,
    })
    await between()
    const { all } = await backup.finish(store.sessions)
    const found = (await listed('target')).map(sessionOf)
    expect(found).toHaveLength(all)
    return found
  }

  test('what is deleted is not in it', async () => {
    await house.session(FIRST, 'closed')
    await house.session(SECOND, 'closed')
    const { sessions } = house.foundation.store
    const found = await copied(async () => {
      const { recording } = (await sessions.find(FIRST))!
      await sessions.update(FIRST, { recording: { ...recording!, state: 'deleted' } })
    })
    expect(found).toEqual([SECOND])
    expect(existsSync(folderOf('target', FIRST))).toBe(false)
  })

  test('what is sealed meanwhile is there sealed, and what begins later is not', async () => {
    const writer = await house.session(FIRST, 'running')
    const found = await copied(async () => {
      await writer.close({ result: 'success' })
      await house.session(SECOND, 'unknown')
    })
    expect(found).toEqual([FIRST])
    expect(await listed('target')).toMatchObject([{ state: 'sealed' }])
  })

  test('one that lies in the object store only has its note', async () => {
    await house.session(FIRST, 'closed')
    const { directory } = (await findRecording(house.foundation.recordingService.root, FIRST))!
    const note = { state: 'sealed', size: 1000, frames: 1, digest: 'ab'.repeat(32), metadata: {} }
    writeFileSync(
      join(directory, 'stored.json'),
      JSON.stringify({ ...note, stored: { key: 'k', sha256: 'cd'.repeat(32) } }),
    )
    rmSync(join(directory, 'session.rec'))
    await copied(async () => {})
    expect(readdirSync(folderOf('target', FIRST)).sort()).toEqual(['key.age', 'stored.json'])
    expect(await listed('target')).toMatchObject([{ size: 1000, digest: note.digest }])
  })
})

test('it ends beside somebody who writes all the time, with the database as it was at one moment', async () => {
  const file = databaseFile(house.config)
  const other = new DatabaseSync(file, { timeout: 5000 })
  other.exec('create table numbers (a integer, b integer)')
  const insert = other.prepare('insert into numbers values (?, ?)')
  other.exec('begin')
  for (let i = 0; i < 200_000; i++) insert.run(i, i)
  other.exec('commit')
  let writes = 0
  let busy: NodeJS.Immediate
  const write = () => {
    // Each transaction keeps the invariant of all rows.
    other.exec('update numbers set a = a + 1, b = b + 1 where rowid = 1')
    writes++
    busy = setImmediate(write)
  }
  busy = setImmediate(write)
  const copy = join(house.folder, 'copy.db')
  try {
    await copyDatabase(file, copy)
  } finally {
    clearImmediate(busy)
  }
  expect(writes).toBeGreaterThan(0)
  other.close()
  const database = new DatabaseSync(copy)
  const row = database.prepare('select count(*) as rows, sum(a != b) as torn from numbers').get()
  expect({ ...row }).toEqual({ rows: 200_000, torn: 0 })
  database.close()
})

test('files of the data folder that the configuration names come along, the master key and drafts do not', async () => {
  const { dataDir } = house.config
  writeFileSync(join(dataDir, 'users.ca'), 'authority')
  writeFileSync(join(dataDir, 'notes'), 'mine')
  writeFileSync(join(dataDir, 'ssh', 'ssh_host_rsa_key.new'), 'half')
  renameSync(join(dataDir, 'ssh', 'ssh_host_rsa_key'), join(house.folder, 'rsa'))
  symlinkSync(join(house.folder, 'rsa'), join(dataDir, 'ssh', 'ssh_host_rsa_key'))
  const masterKey = { file: join(dataDir, 'ssh', 'master.key') }
  renameSync(join(house.folder, 'master.key'), masterKey.file)
  const ssh = { ...house.config.ssh, userCa: [join(dataDir, 'users.ca'), join(house.folder, 'outside.ca')] }
  const config = { ...house.config, ssh, masterKey }
  await house.backup('b', { config, withMasterKey: true })
  const data = join(house.folder, 'b', 'data')
  expect(readdirSync(data).sort()).toEqual(['ssh', 'users.ca.age'])
  expect(readdirSync(join(data, 'ssh')).filter((name) => /new|master/.test(name))).toEqual([])
  expect(filesWith(data, ['PRIVATE KEY'])).toEqual([])

  const again = house.elsewhere('again')
  await restore(again, join(house.folder, 'b'))
  expect(readFileSync(join(again.dataDir, 'users.ca'), 'utf8')).toBe('authority')
  expect(readFileSync(join(again.dataDir, 'ssh', 'ssh_host_rsa_key'))).toEqual(
    readFileSync(join(house.folder, 'rsa')),
  )
})

describe('one that fails', () => {
  test('is removed, and told', async () => {
    await house.session(FIRST, 'closed')
    const stop = new AbortController()
    stop.abort(new Error('interrupted by SIGINT'))
    await expect(house.backup('b', { signal: stop.signal })).rejects.toThrow('interrupted by SIGINT')
    expect(existsSync(join(house.folder, 'b'))).toBe(false)
    expect(await eventsOf('backup.begin')).toMatchObject([
      { user: 'local:test', method: 'database keys recordings' },
    ])
    expect(await eventsOf('backup.end')).toMatchObject([
      { result: 'failure', reason: 'interrupted by SIGINT' },
    ])
  })

  test('leaves a folder that was there', async () => {
    mkdirSync(join(house.folder, 'b'), { mode: 0o700 })
    writeFileSync(join(house.folder, 'master.key'), 'none')
    await expect(house.backup('b')).rejects.toThrow(/holds no master key/)
    expect(readdirSync(join(house.folder, 'b'))).toEqual([])
  })

  test('by a master key that does not open it is one', async () => {
    const { settings } = house.foundation.store
    const old = readFileSync(join(house.folder, 'master.key'))
    await rotateMasterKeyFile(join(house.folder, 'master.key'), settings)
    writeFileSync(join(house.folder, 'master.key'), old)
    await expect(house.backup('b')).rejects.toThrow(/the master key was replaced while the backup was made/)
  })

  test('by a database that is damaged is one: it would be found out when it is needed', async () => {
    const path = join(house.folder, 'damaged.db')
    await house.foundation.store.audit.last()
    await copyDatabase(databaseFile(house.config), path)
    const bytes = readFileSync(path)
    bytes.fill(0xff, 4096 * 3, 4096 * 4)
    writeFileSync(path, bytes)
    await expect(
      house.backup('b', { config: { ...house.config, database: { file: path } } }),
    ).rejects.toThrow(/damaged|malformed/)
    expect(existsSync(join(house.folder, 'b'))).toBe(false)
  })
})

test('a whole one is told with what is in it', async () => {
  await house.session(FIRST, 'closed')
  const manifest = await house.backup('b')
  expect(await eventsOf('backup.end')).toMatchObject([
    {
      result: 'success',
      object: join(house.folder, 'b'),
      digest: manifest.audit.hash,
      reason: `1 sessions, 1 recordings, audit log up to row ${manifest.audit.row}`,
    },
  ])
})

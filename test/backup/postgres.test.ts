/** Backups of a server's database, and restores into one: from either engine into either. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openFoundation } from '../../src/broker/foundation.ts'
import type { Config } from '../../src/config/config.ts'
import { openStore } from '../../src/store/open.ts'
import { formatMasterKey, newMasterKey } from '../../src/vault/master-key.ts'
import { type TestDatabase, testDatabase } from '../peers/databases.ts'
import { newUser } from '../store/fixture.ts'
import { type House, openHouse, restore, SESSIONS } from './setting.ts'

const HASH = Buffer.alloc(32, 1)
const made: TestDatabase[] = []
let database: TestDatabase
let house: House
let good: string
beforeAll(async () => {
  database = await emptyDatabase()
  house = await openHouse(database.url)
  await house.session(SESSIONS[0], 'closed')
  await signIn(house)
  await house.backup('good')
  good = join(house.folder, 'good')
})
afterAll(async () => {
  await house.close()
  await Promise.all(made.map((one) => one.drop()))
})

async function emptyDatabase(): Promise<TestDatabase> {
  const one = await testDatabase({ isEmpty: true })
  made.push(one)
  return one
}

/** Begins what must not outlive a restore. */
async function signIn({ foundation: { store } }: House): Promise<void> {
  const { id: userId } = await store.users.create(newUser('ops1'))
  const limits = { ofUser: 9, all: 9 }
  const one = { userId, secretRevision: 0, begin: 1, lastUse: 1 }
  await store.signIns.begin(HASH, one, { begin: 0, lastUse: 0 }, limits)
  const place = { userId, protocol: 'VNC', address: '192.0.2.1', expires: 9e12 }
  await store.tickets.add({ id: SESSIONS[0], ...place, sealed: HASH, ticket: '{}' }, 0, limits)
  await store.idempotency.claim(HASH, 'then', 0, 9e12)
}

const tablesIn = ({ sql }: TestDatabase) => sql("select tablename from pg_tables where schemaname = 'public'")
const idIn = (config: Config) => readFileSync(join(config.dataDir, 'database.id'), 'utf8').trim()

/** Opens what was restored as the commands do, and looks for what has to be there and what must not. */
async function proveRestored(config: Config): Promise<void> {
  const restored = await openFoundation(config)
  try {
    const { store } = restored
    expect(await store.users.find('ops1')).toBeDefined()
    expect((await store.sessions.find(SESSIONS[0]))?.result).toBe('success')
    expect((await store.audit.range(0, 100)).at(-2)?.code).toBe('backup.restore')
    expect(await store.signIns.find(HASH)).toBeUndefined()
    expect(await store.tickets.waiting(0)).toEqual([])
    expect(await store.idempotency.claim(HASH, 'now', 1, 2)).toBe(true)
  } finally {
    await restored.close()
  }
}

describe('a backup of a server’s database', () => {
  test('goes into another one, which has an id of its own', async () => {
    const other = await emptyDatabase()
    const config = house.elsewhere('server', other.url)
    await restore(config, good)
    expect(readdirSync(config.dataDir).sort()).toEqual(['database.id', 'recordings', 'ssh'])
    expect(idIn(config)).not.toBe(idIn(house.config))
    await proveRestored(config)
    await expect(openFoundation({ ...house.config, database: config.database })).rejects.toThrow(
      'is the database of another bastion',
    )
  })

  test('goes into a file', async () => {
    const config = house.elsewhere('file')
    await restore(config, good)
    expect(readdirSync(config.dataDir).sort()).toEqual(['recordings', 'sallyport.db', 'ssh'])
    await proveRestored(config)
  })

  test('tells of the server that went away, without its folder', async () => {
    const gone = house.elsewhere('gone', 'postgres://sallyport@127.0.0.1:1/gone?sslmode=disable')
    const { database: place } = gone
    const failed = house.backup('failed', { config: { ...house.config, database: place } })
    await expect(failed).rejects.toThrow(/^postgres:\/\/sallyport@127.0.0.1:1\/gone: .*ECONNREFUSED/)
    expect(existsSync(join(house.folder, 'failed'))).toBe(false)
    await expect(restore(gone, good)).rejects.toThrow(/ECONNREFUSED/)
    expect(existsSync(gone.dataDir)).toBe(false)
  })
})

test('a backup of a file goes into a server’s database', async () => {
  const small = await openHouse()
  try {
    await small.session(SESSIONS[0], 'closed')
    await signIn(small)
    await small.backup('b')
    const other = await emptyDatabase()
    const config = small.elsewhere('server', other.url)
    await restore(config, join(small.folder, 'b'))
    await proveRestored(config)
  } finally {
    await small.close()
  }
})

describe('a restore changes nothing, in the folder and in the database, when', () => {
  test('the database has tables, whosever', async () => {
    const config = house.elsewhere('full', database.url)
    await expect(restore(config, good)).rejects.toThrow(
      /it is not empty \(account_credentials, .*make another/,
    )
    expect(existsSync(config.dataDir)).toBe(false)
  })

  test('a broker has the database', async () => {
    const other = await emptyDatabase()
    const store = await openStore({ postgres: other.place, folder: house.folder })
    const release = await store.claim(() => undefined)
    const config = house.elsewhere('claimed', other.url)
    await expect(restore(config, good)).rejects.toThrow(/is in use by another broker/)
    expect(existsSync(config.dataDir)).toBe(false)
    await release()
    await store.close()
  })

  test('the server has a fault while it is filled', async () => {
    const other = await emptyDatabase()
    // Our own function is in the way.
    await other.sql(
      'create function is_like(value text, parts text[]) returns boolean language sql return true',
    )
    const config = house.elsewhere('fault', other.url)
    await expect(restore(config, good)).rejects.toThrow(
      /refused a statement: function "is_like" already exists/,
    )
    expect(existsSync(config.dataDir)).toBe(false)
    expect(await tablesIn(other)).toEqual([])
    await other.sql('drop function is_like')
    await restore(config, good)
    await proveRestored(config)
  })

  test('one was interrupted while it was filled: it can be run again', async () => {
    const other = await emptyDatabase()
    const config = house.elsewhere('again', other.url)
    mkdirSync(join(config.dataDir, 'restoring', 'data'), { recursive: true, mode: 0o700 })
    writeFileSync(join(config.dataDir, 'restoring', 'placing.json'), '{"names":["database.id"]}')
    writeFileSync(join(config.dataDir, 'database.id'), 'half')
    await expect(openFoundation(config)).rejects.toThrow(/a restore was interrupted/)
    await restore(config, good)
    await proveRestored(config)
  })
})

describe('a restore whose commit has no answer, and whose server is out of reach,', () => {
  /** The way to the server, lost with the answer to a commit. */
  async function losing(port: number) {
    const near = new Set<Socket>()
    let isLost = false
    const lose = () => {
      isLost = true
      for (const socket of near) socket.destroy()
    }
    const proxy = createServer((socket) => {
      if (isLost) {
        socket.destroy()
        return
      }
      near.add(socket)
      const onward = connect(port, '127.0.0.1')
      let isCommit = false
      socket.on('data', (data) => {
        isCommit ||= /^Q....commit\0/s.test(data.toString('latin1'))
        onward.write(data)
      })
      onward.on('data', (data) => (isCommit ? lose() : socket.write(data)))
      for (const one of [socket, onward]) one.on('error', () => undefined)
      socket.on('close', () => onward.destroy())
      onward.on('close', () => socket.destroy())
    })
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
    return {
      port: (proxy.address() as { port: number }).port,
      close: () => {
        lose()
        proxy.close()
      },
    }
  }

  test('keeps brokers away, and can be run again on the database made anew', async () => {
    const other = await emptyDatabase()
    await house.backup('whole', { withMasterKey: true })
    const whole = join(house.folder, 'whole')
    const proxy = await losing(Number(new URL(other.url).port))
    const url = other.url.replace(/:\d+\//, `:${proxy.port}/`)
    const key = join(house.folder, 'lost.key')
    const lost: Config = { ...house.elsewhere('lost', url), masterKey: { file: key } }
    await expect(restore(lost, whole)).rejects.toThrow(
      /the answer to the commit was lost.*no broker starts in .*lost until it is restored: make that database anew/,
    )
    proxy.close()
    const direct: Config = { ...house.elsewhere('lost', other.url), masterKey: { file: key } }
    await expect(openFoundation(direct)).rejects.toThrow(/a restore was interrupted/)
    // It was done: the database is full, and all that belongs to it is there.
    expect(await tablesIn(other)).not.toEqual([])
    await expect(restore(direct, whole)).rejects.toThrow(/it is not empty/)
    await expect(openFoundation(direct)).rejects.toThrow(/a restore was interrupted/)
    await other.sql('drop schema public cascade')
    await other.sql('create schema public')
    // The key that was put there goes with the other files.
    expect(existsSync(key)).toBe(true)
    await expect(restore(direct, good)).rejects.toThrow(/the backup needs the master key/)
    expect(existsSync(key)).toBe(false)
    await restore(direct, whole)
    expect(readdirSync(direct.dataDir).sort()).toEqual(['database.id', 'recordings', 'ssh'])
    expect(readFileSync(key)).toEqual(readFileSync(join(house.folder, 'master.key')))
    await proveRestored(direct)
    rmSync(whole, { recursive: true })
  })
})

describe('the database of another bastion, of an older version,', () => {
  const versionOf = async ({ sql }: TestDatabase) =>
    Number((await sql('select max(version) as version from schema_migrations'))[0]?.['version'])

  /** Makes it one of the version before, as far as it tells. */
  async function olderDatabase(): Promise<{ other: TestDatabase; config: Config; version: number }> {
    const other = await emptyDatabase()
    const config = house.elsewhere(`older-${made.length}`, other.url)
    await restore(config, good)
    const newest = await versionOf(other)
    await other.sql(`delete from schema_migrations where version = ${newest}`)
    return { other, config, version: await versionOf(other) }
  }

  test('is not brought up to date, but refused', async () => {
    const { other, config, version } = await olderDatabase()
    const strange = { ...house.config, database: config.database }
    await expect(openFoundation(strange)).rejects.toThrow(/is the database of another bastion: it has the id/)
    const fresh = { ...house.elsewhere('fresh'), database: config.database }
    const key = join(house.folder, 'other.key')
    writeFileSync(key, formatMasterKey(newMasterKey()).reveal(), { mode: 0o600 })
    const opened = openFoundation({ ...fresh, masterKey: { file: key } })
    await expect(opened).rejects.toThrow(/the master key does not fit this database/)
    expect(await versionOf(other)).toBe(version)
    // With its own folder it comes as far as the step that is there already.
    await expect(openFoundation(config)).rejects.toThrow(/already exists/)
  })

  test('that is empty by now stays empty', async () => {
    const other = await emptyDatabase()
    const { database: place } = house.elsewhere('x', other.url)
    await expect(openFoundation({ ...house.config, database: place })).rejects.toThrow(
      /is a new one, and that of the data folder .* has the id/,
    )
    expect(await tablesIn(other)).toEqual([])
  })
})

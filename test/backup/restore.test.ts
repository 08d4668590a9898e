/** Destination of a restore: the data folder, the master key's place, and files that may exist there. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Manifest } from '../../src/backup/manifest.ts'
import { type Foundation, openFoundation } from '../../src/broker/foundation.ts'
import { FrontKeys } from '../../src/broker/front-keys.ts'
import type { Config } from '../../src/config/config.ts'
import { openDataFolder } from '../../src/host/data-folder.ts'
import { formatMasterKey, newMasterKey } from '../../src/vault/master-key.ts'
import { newUser } from '../store/fixture.ts'
import { databaseFile, type House, openHouse, restore, SESSIONS } from './setting.ts'

let house: House
let manifest: Manifest
beforeAll(async () => {
  house = await openHouse()
  await house.session(SESSIONS[0], 'closed')
  manifest = await house.backup('good')
  await house.backup('with-key', { withMasterKey: true })
})
afterAll(() => house.close())

let names = 0
/** Returns a configuration whose data folder does not exist. */
const fresh = () => house.elsewhere(`data-${++names}`)
const recordingOf = (backup: string) => join(backup, 'recordings', '2026', '11', '20', SESSIONS[0])

async function refused(backup: string, config: Config, message: RegExp): Promise<void> {
  await expect(restore(config, backup)).rejects.toThrow(message)
  expect(existsSync(config.dataDir)).toBe(false)
}

test('a good one is taken', async () => {
  const config = fresh()
  expect(await restore(config, join(house.folder, 'good'))).toMatchObject({ masterKey: 'configured' })
  expect(readdirSync(config.dataDir).sort()).toEqual(['recordings', 'sallyport.db', 'ssh'])
  for (const name of ['ssh', 'recordings']) {
    expect(statSync(join(config.dataDir, name)).mode & 0o777).toBe(0o700)
  }
  for (const name of readdirSync(join(config.dataDir, 'ssh'))) {
    const at = join('ssh', name)
    expect(readFileSync(join(config.dataDir, at))).toEqual(readFileSync(join(house.config.dataDir, at)))
    expect(statSync(join(config.dataDir, at)).mode & 0o777).toBe(0o600)
  }
})

test('brings the listeners’ keys back, and no cookie or ticket, which may have ended since', async () => {
  const { store, vault } = house.foundation
  const keysOf = (dataDir: string, of: Pick<Foundation, 'store' | 'vault'>) =>
    new FrontKeys({
      dataDir,
      settings: of.store.settings,
      vault: of.vault,
      say: { info: () => undefined, warn: () => undefined },
    })
  const before = await keysOf(join(house.folder, 'listeners'), { store, vault }).vncKey()
  const { id: userId } = await store.users.create(newUser('ops1'))
  const [hash, limits] = [Buffer.alloc(32, 1), { ofUser: 9, all: 9 }]
  const signIn = { userId, secretRevision: 0, begin: 1, lastUse: 1 }
  await store.signIns.begin(hash, signIn, { begin: 0, lastUse: 0 }, limits)
  const place = { userId, protocol: 'VNC', address: '192.0.2.1', expires: 9 }
  const ticket = { id: SESSIONS[0], ...place, sealed: hash, ticket: '{}' }
  expect(await store.tickets.add(ticket, 0, limits)).toBe(true)
  await house.backup('signed-in')
  const config = fresh()
  await restore(config, join(house.folder, 'signed-in'))
  const restored = await openFoundation(config)
  try {
    expect(await restored.store.users.find('ops1')).toBeDefined()
    expect(await restored.store.signIns.find(hash)).toBeUndefined()
    expect(await restored.store.tickets.waiting(0)).toEqual([])
    expect(await keysOf(config.dataDir, restored).vncKey()).toBe(before)
    expect(await store.signIns.find(hash)).toBeDefined()
  } finally {
    await restored.close()
    await store.tickets.removeAll()
    await store.users.remove(userId)
  }
})

describe('the master key', () => {
  const without = (name: string): Config => ({
    ...fresh(),
    masterKey: { file: join(house.folder, 'keys', name) },
  })
  beforeAll(() => mkdirSync(join(house.folder, 'keys'), { mode: 0o700 }))

  test('that is missing is asked for by its fingerprint', async () => {
    const { fingerprint } = manifest.master_key
    await refused(
      join(house.folder, 'good'),
      without('none'),
      new RegExp(
        `needs the master key of fingerprint ${fingerprint}, and there is no .*none: put that key there`,
      ),
    )
    const variable: Config = { ...fresh(), masterKey: { env: 'KEY_OF_NOBODY' } }
    await refused(
      join(house.folder, 'good'),
      variable,
      /variable KEY_OF_NOBODY is not set: set it to that key/,
    )
  })

  test('that is another one is refused', async () => {
    const config = without('wrong')
    const { file } = config.masterKey as { file: string }
    writeFileSync(file, formatMasterKey(newMasterKey()).reveal(), { mode: 0o600 })
    await refused(
      join(house.folder, 'good'),
      config,
      /the master key does not fit this database: .*fingerprint/,
    )
    await refused(join(house.folder, 'with-key'), config, /the master key does not fit this database/)
  })

  test('that came along is put in its place, when there is none', async () => {
    const config = without('taken')
    const { file } = config.masterKey as { file: string }
    expect(await restore(config, join(house.folder, 'with-key'))).toMatchObject({ masterKey: 'backup' })
    expect(readFileSync(file, 'utf8')).toBe(readFileSync(join(house.folder, 'master.key'), 'utf8'))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    const { store } = await openFoundation(config)
    await store.close()
  })
})

describe('the data folder', () => {
  const good = () => join(house.folder, 'good')

  test('that holds anything else is left alone', async () => {
    const config = fresh()
    mkdirSync(config.dataDir, { mode: 0o700 })
    writeFileSync(join(config.dataDir, 'notes'), 'mine')
    await expect(restore(config, good())).rejects.toThrow(/is not empty \(notes\), .* move it away \(mv /)
    expect(readFileSync(join(config.dataDir, 'notes'), 'utf8')).toBe('mine')
    expect(readdirSync(config.dataDir)).toEqual(['notes'])
  })

  test('whose log of writes survived is left alone: it is of another database', async () => {
    const config = { ...fresh(), database: { file: join(house.folder, 'apart.db') } }
    writeFileSync(`${databaseFile(config)}-wal`, 'x')
    await refused(good(), config, /there is a database .*apart\.db-wal/)
    rmSync(`${databaseFile(config)}-wal`)
  })

  test('that others can read is refused', async () => {
    const config = fresh()
    mkdirSync(config.dataDir, { mode: 0o755 })
    await expect(restore(config, good())).rejects.toThrow(/is open to other users \(mode 755\)/)
  })

  test('may have the recordings still, and what is there of them stays', async () => {
    const config = fresh()
    const place = join(config.dataDir, 'recordings', '2026', '11', '20', SESSIONS[0])
    mkdirSync(place, { recursive: true, mode: 0o700 })
    writeFileSync(join(place, 'session.rec'), 'survived')
    chmodSync(config.dataDir, 0o700)
    await restore(config, good())
    expect(readFileSync(join(place, 'session.rec'), 'utf8')).toBe('survived')
    expect(readFileSync(join(place, 'key.age'))).toEqual(readFileSync(join(recordingOf(good()), 'key.age')))
  })

  test('is as it was when a restore fails that had begun, recordings too', async () => {
    const config = fresh()
    mkdirSync(join(config.dataDir, 'recordings', '2025'), { recursive: true, mode: 0o700 })
    chmodSync(config.dataDir, 0o700)
    const backup = house.copy('good')
    rmSync(join(recordingOf(backup), 'session.rec'))
    await expect(restore(config, backup)).rejects.toThrow(/session\.rec is missing/)
    expect(readdirSync(config.dataDir)).toEqual(['recordings'])
    expect(readdirSync(join(config.dataDir, 'recordings'))).toEqual(['2025'])
  })

  test('of a restore that was interrupted starts no broker, and the restore can be run again', async () => {
    const config = fresh()
    // The state after the process has died between two renames.
    mkdirSync(join(config.dataDir, 'restoring', 'data'), { recursive: true, mode: 0o700 })
    chmodSync(config.dataDir, 0o700)
    // The master key at hand is not the one that was to be placed, and stays.
    const placing = { names: ['ssh', 'tls'], masterKey: '0'.repeat(64) }
    writeFileSync(join(config.dataDir, 'restoring', 'placing.json'), JSON.stringify(placing))
    mkdirSync(join(config.dataDir, 'ssh'))
    writeFileSync(join(config.dataDir, 'ssh', 'half'), '')
    writeFileSync(`${databaseFile(config)}.restoring`, 'half')
    mkdirSync(join(config.dataDir, 'recordings', 'restoring', '2026'), { recursive: true })
    expect(() => openDataFolder(config.dataDir)).toThrow(
      /a restore was interrupted: run sallyport restore again/,
    )
    await restore(config, good())
    openDataFolder(config.dataDir)
    expect(existsSync(join(config.dataDir, 'ssh', 'half'))).toBe(false)
    expect(readdirSync(config.dataDir).filter((name) => name.includes('restoring'))).toEqual([])
  })

  test('with a folder `restoring` of somebody else keeps its database', async () => {
    const config = fresh()
    mkdirSync(join(config.dataDir, 'restoring'), { recursive: true, mode: 0o700 })
    chmodSync(config.dataDir, 0o700)
    writeFileSync(databaseFile(config), 'mine')
    await expect(restore(config, good())).rejects.toThrow(/is not empty \(sallyport\.db\)/)
    expect(readFileSync(databaseFile(config), 'utf8')).toBe('mine')
  })

  test.skipIf(process.geteuid?.() !== 0)('of another user gets files of that user', async () => {
    const config = fresh()
    mkdirSync(config.dataDir, { mode: 0o700 })
    chownSync(config.dataDir, 65534, 65534)
    await restore(config, good())
    const below = readdirSync(config.dataDir, { recursive: true }) as string[]
    expect(below).toContain('sallyport.db')
    for (const name of below) expect([name, statSync(join(config.dataDir, name)).uid]).toEqual([name, 65534])
  })
})

import { chmodSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/model/secret.ts'
import { loadMasterKey, rotateMasterKeyFile } from '../../src/vault/key-file.ts'
import {
  formatMasterKey,
  MasterKeyError,
  newMasterKey,
  openDataKey,
  parseMasterKey,
  rotate,
  WRAPPED_KEY,
} from '../../src/vault/master-key.ts'
import { openVault } from '../../src/vault/vault.ts'
import { type Estate, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

let temp: TemporaryStore
let estate: Estate
let file: string

beforeEach(async () => {
  temp = await temporaryStore()
  estate = await smallEstate(temp.store)
  file = join(dirname(temp.path), 'master.key')
  const vault = await openVault(temp.store, { file })
  await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('hunter2') }])
})
afterEach(() => temp.remove())

/** Returns the password that a newly started broker finds. */
async function password(): Promise<string | undefined> {
  const vault = await openVault(temp.store, { file })
  const [credential] = await vault.credentials(estate.account.id)
  return credential?.type === 'password' ? credential.password.revealText() : undefined
}

describe('the master key', () => {
  it('is a file of its own, for its owner only, that is recognised', () => {
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readFileSync(file, 'utf8')).toMatch(/^SALLYPORT-MASTER-KEY-1:[A-Za-z0-9+/]{43}=\n$/)
  })

  it('comes from an environment variable as well', async () => {
    const text = readFileSync(file, 'utf8')
    const key = await loadMasterKey({ env: 'MASTER' }, temp.store.settings, { MASTER: text })
    expect(key.equals(parseMasterKey(text, 'x'))).toBe(true)
    await expect(loadMasterKey({ env: 'MASTER' }, temp.store.settings, {})).rejects.toThrow(
      'MASTER is not set',
    )
  })

  it('that is another one is refused, with both fingerprints', async () => {
    renameSync(file, `${file}.kept`)
    writeFileSync(file, formatMasterKey(newMasterKey()).reveal())
    await expect(password()).rejects.toThrow(MasterKeyError)
    await expect(password()).rejects.toThrow(
      /sealed with the key of fingerprint [0-9a-f]{16}, given was [0-9a-f]{16}/,
    )
    renameSync(`${file}.kept`, file)
    expect(await password()).toBe('hunter2')
  })

  it('that is missing is not replaced by a new one', async () => {
    renameSync(file, `${file}.kept`)
    await expect(password()).rejects.toThrow('is missing')
    expect(existsSync(file)).toBe(false)
  })

  it.each(['', 'x', 'SALLYPORT-MASTER-KEY-1:', `SALLYPORT-MASTER-KEY-1:${'A'.repeat(42)}==`, 'A'.repeat(44)])(
    'is refused when it is %j, without repeating it',
    (text) => {
      writeFileSync(file, text)
      expect(() => parseMasterKey(text, 'master.key')).toThrow(MasterKeyError)
      expect(() => parseMasterKey(text, 'master.key')).toThrow(/^master.key holds no master key/)
      expect(() => parseMasterKey(text, 'master.key')).not.toThrow('AAAA')
    },
  )

  it('that cannot be read is an error, not a new key', async () => {
    chmodSync(file, 0o000)
    if (process.getuid?.() !== 0) await expect(password()).rejects.toThrow('EACCES')
    writeFileSync(`${file}.d`, '')
    await expect(openVault(temp.store, { file: join(`${file}.d`, 'key') })).rejects.toThrow('ENOTDIR')
  })

  it('does not hide that the wrapped data key is damaged', async () => {
    const wrapped = JSON.parse(Buffer.from((await temp.store.settings.get(WRAPPED_KEY))!).toString())
    const sealed = Buffer.from(wrapped.sealed, 'base64')
    sealed[20]! ^= 1
    for (const damage of ['', '{}', JSON.stringify({ ...wrapped, sealed: sealed.toString('base64') })]) {
      await temp.store.settings.set(WRAPPED_KEY, Buffer.from(damage))
      await expect(password()).rejects.toThrow('the wrapped data key in the database is damaged')
    }
  })
})

describe('changing the master key', () => {
  it('keeps what is sealed, and the old key no longer opens it', async () => {
    const old = parseMasterKey(readFileSync(file, 'utf8'), file)
    await rotateMasterKeyFile(file, temp.store.settings)
    expect(await password()).toBe('hunter2')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(existsSync(`${file}.new`)).toBe(false)
    await expect(openDataKey(temp.store.settings, old)).rejects.toThrow(MasterKeyError)
  })

  it('is refused with a wrong old key, and changes nothing', async () => {
    await expect(rotate(temp.store.settings, newMasterKey(), newMasterKey())).rejects.toThrow(MasterKeyError)
    expect(await password()).toBe('hunter2')
  })

  it('survives a crash before the database is rewrapped', async () => {
    writeFileSync(`${file}.new`, formatMasterKey(newMasterKey()).reveal())
    expect(await password()).toBe('hunter2')
    await rotateMasterKeyFile(file, temp.store.settings)
    expect(await password()).toBe('hunter2')
  })

  it('survives a crash after the database is rewrapped', async () => {
    const old = parseMasterKey(readFileSync(file, 'utf8'), file)
    const fresh = newMasterKey()
    const text = Buffer.from(formatMasterKey(fresh).reveal())
    writeFileSync(`${file}.new`, text)
    await rotate(temp.store.settings, old, fresh)
    expect(await password()).toBe('hunter2')
    expect(readFileSync(file)).toEqual(text)
    expect(existsSync(`${file}.new`)).toBe(false)
  })
})

it('two first starts at the same moment agree on one data key', async () => {
  const empty = await temporaryStore()
  const master = newMasterKey()
  const [a, b] = await Promise.all([1, 2].map(() => openDataKey(empty.store.settings, master)))
  expect(a!.key.equals(b!.key)).toBe(true)
  await empty.remove()
})

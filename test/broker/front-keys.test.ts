/** The listeners' keys: where they lie, and which one counts. */
import { X509Certificate } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { generate } from 'selfsigned'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { FrontKeys } from '../../src/broker/front-keys.ts'
import { publicHostKeys } from '../../src/host/front-files.ts'
import { newSshKey, publicLine } from '../../src/host/ssh-keys.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { loadMasterKey } from '../../src/vault/key-file.ts'
import { newMasterKey } from '../../src/vault/master-key.ts'
import { renewDataKey } from '../../src/vault/renewal.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const HOST = 'bastion.example.com'
const ED25519 = 'ssh_host_ed25519_key'

let temp: TemporaryStore
let other: Store
let vault: Vault
let said: string[]
beforeEach(async () => {
  temp = await temporaryStore()
  other = await openStore({ path: temp.path })
  vault = await openVault(temp.store, { file: `${temp.path}.key` })
  said = []
})
afterEach(async () => {
  await other.close()
  await temp.remove()
})

const folder = (name: string) => join(dirname(temp.path), name)

/** Returns the keys of a broker's start with that data folder. */
function keysOf(name: string, store = temp.store, sealing = vault): FrontKeys {
  const say = {
    info: (text: string) => said.push(`info ${text}`),
    warn: (text: string) => said.push(`warn ${text}`),
  }
  return new FrontKeys({ dataDir: folder(name), settings: store.settings, vault: sealing, say })
}

const allOf = async (keys: FrontKeys) => [
  await keys.hostKeys(),
  await keys.vncKey(),
  await keys.tls('https', HOST, {}),
]

function lay(name: string, file: string, content: string): void {
  mkdirSync(dirname(join(folder(name), file)), { recursive: true })
  writeFileSync(join(folder(name), file), content)
}

test('are made once, for all brokers on the database, and no private one is in a file', async () => {
  const first = await allOf(keysOf('a'))
  expect(await allOf(keysOf('b', other))).toEqual(first)
  expect(publicHostKeys(folder('b'))).toEqual(publicHostKeys(folder('a')))
  expect(readdirSync(join(folder('a'), 'ssh')).every((file) => file.endsWith('.pub'))).toBe(true)
  expect(readdirSync(join(folder('a'), 'tls'))).toEqual(['cert.pem'])
  // After the loss of the folder nothing changes.
  rmSync(folder('a'), { recursive: true })
  expect(await allOf(keysOf('a'))).toEqual(first)
  expect(publicHostKeys(folder('a'))).toEqual(publicHostKeys(folder('b')))
  expect(said).toEqual([])
})

test('of two first starts at the same moment are those of one', async () => {
  const [first, second] = await Promise.all([allOf(keysOf('a')), allOf(keysOf('b', other))])
  expect(first).toEqual(second)
})

test('that lie in files already are taken into the database, once', async () => {
  const { private: key } = newSshKey('ed25519')
  const { cert, private: tlsKey } = await generate([{ name: 'commonName', value: HOST }], { keyType: 'ec' })
  lay('old', `ssh/${ED25519}`, key)
  lay('old', 'tls/cert.pem', cert)
  lay('old', 'tls/key.pem', tlsKey)
  const before = await allOf(keysOf('old'))
  expect(before[0]).toMatchObject([{ private: key, public: publicLine(key) }, {}, {}])
  expect(before[2]).toEqual({ cert, key: tlsKey })
  expect(said.filter((line) => line.startsWith('info the key'))).toHaveLength(2)
  expect(await allOf(keysOf('old'))).toEqual(before)
  for (const file of [`ssh/${ED25519}`, `ssh/${ED25519}.pub`, 'tls/key.pem'])
    rmSync(join(folder('old'), file))
  expect(await allOf(keysOf('old'))).toEqual(before)
  expect(readFileSync(join(folder('old'), 'ssh', `${ED25519}.pub`), 'utf8')).toBe(`${publicLine(key)}\n`)
  expect(said).toHaveLength(2)
})

test('are replaced by a file, and stay so when it is removed', async () => {
  const [before] = await keysOf('a').hostKeys()
  const { private: next } = newSshKey('ed25519')
  lay('a', `ssh/${ED25519}`, next)
  expect((await keysOf('a').hostKeys())[0]!.private).toBe(next)
  expect(said).toEqual([expect.stringMatching(`^warn the key .*/${ED25519} has replaced another one`)])
  rmSync(join(folder('a'), 'ssh', ED25519))
  expect((await keysOf('b', other).hostKeys())[0]).toEqual({ private: next, public: publicLine(next) })
  expect((await keysOf('a').hostKeys())[0]!.private).not.toBe(before!.private)
})

test('a file that is no key is an error with its name, and changes nothing in the database', async () => {
  const before = await allOf(keysOf('a'))
  const files = [`ssh/${ED25519}`, 'tls/vnc_rsa_key.pem', 'tls/key.pem']
  for (const file of files) {
    lay('b', file, 'half a k')
    if (file === 'tls/key.pem') lay('b', 'tls/cert.pem', 'and half a certificate')
    await expect(allOf(keysOf('b'))).rejects.toThrow(`${join(folder('b'), file)} is no `)
    expect(await allOf(keysOf('c'))).toEqual(before)
    rmSync(join(folder('b'), file))
  }
  expect(await allOf(keysOf('b'))).toEqual(before)
})

test('a certificate of the bastion’s own that has expired is made anew', async () => {
  const times = { notBeforeDate: new Date(0), notAfterDate: new Date(86_400_000) }
  const old = await generate([{ name: 'commonName', value: HOST }], { keyType: 'ec', ...times })
  lay('a', 'tls/cert.pem', old.cert)
  lay('a', 'tls/key.pem', old.private)
  // In a file it is the administrator's.
  expect((await keysOf('a').tls('https', HOST, {})).cert).toBe(old.cert)
  for (const file of ['cert.pem', 'key.pem']) rmSync(join(folder('a'), 'tls', file))
  const { cert } = await keysOf('a').tls('https', HOST, {})
  expect(Date.parse(new X509Certificate(cert).validTo)).toBeGreaterThan(Date.now())
  expect((await keysOf('b', other).tls('https', HOST, {})).cert).toBe(cert)
  expect(existsSync(join(folder('a'), 'tls', 'key.pem'))).toBe(false)
})

test('are sealed, and outlive a new data key', async () => {
  const before = await allOf(keysOf('a'))
  const [ed25519] = before[0] as { private: string }[]
  const body = ed25519!.private.split('\n')[2]!
  for (const file of [temp.path, `${temp.path}-wal`]) expect(readFileSync(file, 'latin1')).not.toContain(body)
  const old = await loadMasterKey({ file: `${temp.path}.key` }, temp.store.settings)
  const renewed = await temp.store.transaction((within) => renewDataKey(within, old, newMasterKey()))
  expect(await allOf(keysOf('c', temp.store, renewed.on(temp.store)))).toEqual(before)
  await expect(allOf(keysOf('d'))).rejects.toThrow('another data key')
})

test('says when the certificate of each listener ends; a file that is none leaves the one before', async () => {
  const keys = keysOf('a')
  const { cert } = await keys.tls('https', HOST, {})
  const end = Date.parse(new X509Certificate(cert).validTo) / 1000
  expect([...keys.ends]).toEqual([['https', end]])
  const file = join(folder('a'), 'no.pem')
  writeFileSync(file, 'no certificate')
  await keys.tls('https', HOST, { certificate: file, key: file })
  expect([...keys.ends]).toEqual([['https', end]])
})

import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Secret } from '../../src/model/secret.ts'
import { MissingReferenceError } from '../../src/store/engine/errors.ts'
import { openStore } from '../../src/store/open.ts'
import { type Credential, CredentialError, MAX_PASSWORD_BYTES } from '../../src/vault/credentials.ts'
import { MasterKeyError } from '../../src/vault/master-key.ts'
import { type DataKey, open, seal, UnsealError } from '../../src/vault/seal.ts'
import { openVault, type Vault } from '../../src/vault/vault.ts'
import { opensshKey } from '../identity/keys.ts'
import { type Estate, newAccount, smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const key: DataKey = { id: randomBytes(8), key: Secret.of(randomBytes(32)) }
const place = { table: 'accounts', id: '1', field: 'password' }

describe('a sealed value', () => {
  const sealed = seal(key, place, Secret.of('hunter2'))

  it('opens at its place', () => {
    expect(open(key, place, sealed).revealText()).toBe('hunter2')
    expect(open(key, place, seal(key, place, Secret.of(''))).length).toBe(0)
  })

  it('differs each time', () => {
    expect(seal(key, place, Secret.of('hunter2'))).not.toEqual(sealed)
  })

  it.each([
    { ...place, table: 'users' },
    { ...place, id: '2' },
    { ...place, field: 'ssh_key' },
    { table: 'accounts1', id: '', field: 'password' },
  ])('does not open at $table $id $field', (other) => {
    expect(() => open(key, other, sealed)).toThrow(UnsealError)
  })

  it('does not open after any change', () => {
    for (let i = 0; i < sealed.length; i++) {
      const changed = sealed.map((byte, index) => (index === i ? byte ^ 0x80 : byte))
      expect(() => open(key, place, changed)).toThrow(UnsealError)
      expect(() => open(key, place, sealed.subarray(0, i))).toThrow(UnsealError)
    }
  })

  it('does not open under another key', () => {
    const other = { id: key.id, key: Secret.of(randomBytes(32)) }
    expect(() => open(other, place, sealed)).toThrow(UnsealError)
    expect(() => open({ ...key, id: randomBytes(8) }, place, sealed)).toThrow('another data key')
  })
})

describe('the vault', () => {
  let temp: TemporaryStore
  let vault: Vault
  let estate: Estate
  let file: string

  beforeEach(async () => {
    temp = await temporaryStore()
    estate = await smallEstate(temp.store)
    file = join(dirname(temp.path), 'master.key')
    vault = await openVault(temp.store, { file })
  })
  afterEach(() => temp.remove())

  const texts = (credentials: Credential[]) =>
    credentials.map((credential) =>
      credential.type !== 'ssh_key'
        ? credential.password.revealText()
        : [credential.privateKey.revealText(), credential.passphrase?.revealText()],
    )

  it('gives back what it was given, in that order, also after a restart', async () => {
    const { file: privateKey } = opensshKey('ed25519', undefined, 'sesame')
    await vault.setCredentials(estate.account.id, [
      { type: 'ssh_key', privateKey: Secret.of(privateKey), passphrase: Secret.of('sesame') },
      { type: 'password', password: Secret.of('pässword"\u0001') },
    ])
    const again = await openVault(temp.store, { file })
    expect(texts(await again.credentials(estate.account.id))).toEqual([
      [privateKey, 'sesame'],
      'pässword"\u0001',
    ])
    expect((await temp.store.accounts.find(estate.account.id))?.credentialTypes).toEqual([
      'ssh_key',
      'password',
    ])
    await vault.setCredentials(estate.account.id, [])
    expect(await vault.credentials(estate.account.id)).toEqual([])
  })

  it('does not open a credential that was copied to another account', async () => {
    const other = await temp.store.accounts.create(newAccount(estate.domain.id, 'mallory'))
    await vault.setCredentials(estate.account.id, [{ type: 'password', password: Secret.of('root-secret') }])
    await temp.store.accounts.setSealedCredentials(
      other.id,
      await temp.store.accounts.sealedCredentials(estate.account.id),
    )
    await expect(vault.credentials(other.id)).rejects.toThrow(UnsealError)
  })

  it('takes keys of every kind that OpenSSH makes', async () => {
    for (const [type, bits] of [['ed25519'], ['ecdsa', 521], ['rsa', 2048]] as const) {
      const privateKey = Secret.of(opensshKey(type, bits).file)
      await vault.setCredentials(estate.account.id, [{ type: 'ssh_key', privateKey }])
    }
  })

  it('refuses what cannot be used, naming the field and nothing of the secret', async () => {
    const plain = opensshKey('ed25519')
    const locked = opensshKey('ed25519', undefined, 'sesame')
    const canary = 'CANARY-7f3a'
    const cases: [Credential[], string][] = [
      [[{ type: 'password', password: Secret.of('') }], 'password'],
      [[{ type: 'password', password: Secret.of('x'.repeat(MAX_PASSWORD_BYTES + 1)) }], 'password'],
      [[{ type: 'ssh_key', privateKey: Secret.of(canary) }], 'private_key'],
      [[{ type: 'ssh_key', privateKey: Secret.of(plain.line) }], 'private_key'],
      [[{ type: 'ssh_key', privateKey: Secret.of(plain.file.slice(0, 200)) }], 'private_key'],
      [[{ type: 'ssh_key', privateKey: Secret.of(locked.file) }], 'passphrase'],
      [
        [{ type: 'ssh_key', privateKey: Secret.of(locked.file), passphrase: Secret.of(canary) }],
        'passphrase',
      ],
      [[1, 2].map(() => ({ type: 'password' as const, password: Secret.of(canary) })), 'credentials'],
    ]
    for (const [credentials, field] of cases) {
      const error = await vault
        .setCredentials(estate.account.id, credentials)
        .catch((error: unknown) => error)
      expect(error).toBeInstanceOf(CredentialError)
      expect(error).toMatchObject({ field })
      expect(String(error)).not.toContain(canary)
    }
    expect(await vault.credentials(estate.account.id)).toEqual([])
    const password = Secret.of('x')
    await expect(vault.setCredentials(estate.user.id, [{ type: 'password', password }])).rejects.toThrow(
      MissingReferenceError,
    )
  })

  it('leaves no secret in the database or its log, before and after a checkpoint', async () => {
    const canary = 'CANARY-5d1c9b'
    const { file: privateKey } = opensshKey('ed25519', undefined, canary)
    await vault.setCredentials(estate.account.id, [
      { type: 'password', password: Secret.of(canary) },
      { type: 'ssh_key', privateKey: Secret.of(privateKey), passphrase: Secret.of(canary) },
    ])
    const master = readFileSync(file, 'utf8').trim().split(':')[1]!
    const body = privateKey.split('\n')[1]!
    const needles = [canary, body, master].flatMap((text) => {
      const bytes = Buffer.from(text)
      return [
        bytes,
        bytes.toString('base64').slice(0, -4),
        bytes.toString('hex'),
        Buffer.from(text, 'utf16le'),
      ]
    })
    needles.push(Buffer.from(master, 'base64'))
    const found = () => {
      const folder = dirname(temp.path)
      const files = readdirSync(folder).filter((name) => name.startsWith('sallyport.db'))
      const bytes = Buffer.concat(files.map((name) => readFileSync(join(folder, name))))
      // The search itself works: it finds values that are in clear text.
      expect(bytes.includes('root')).toBe(true)
      expect(bytes.includes(estate.account.id)).toBe(true)
      return needles.filter((needle) => bytes.includes(needle))
    }
    expect(readdirSync(dirname(temp.path))).toContain('sallyport.db-wal')
    expect(found()).toEqual([])
    await temp.store.close()
    expect(found()).toEqual([])
    temp.store = await openStore({ path: temp.path })
  })

  it('does not open without its master key', async () => {
    const other = join(dirname(temp.path), 'other.key')
    await expect(openVault(temp.store, { file: other })).rejects.toThrow(MasterKeyError)
    await expect(openVault(temp.store, { file: other })).rejects.toThrow('is missing')
  })
})

/** Keys of certificate authorities: accepted, stored and used. ssh-keygen reads their signatures. */
import { execFileSync } from 'node:child_process'
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { flawOfCertificate, parseCertificate } from '../../src/identity/certificate.ts'
import { Secret } from '../../src/model/secret.ts'
import { authorityOf, readAuthorityKey } from '../../src/vault/authority.ts'
import { certify, principalFlaw } from '../../src/vault/certificate.ts'
import { CredentialError } from '../../src/vault/credentials.ts'
import { UnsealError } from '../../src/vault/seal.ts'
import { openVault } from '../../src/vault/vault.ts'
import { opensshKey } from '../identity/keys.ts'
import { smallEstate } from '../store/fixture.ts'
import { type TemporaryStore, temporaryStore } from '../store/temp.ts'

const given = (privateKey: string, passphrase?: string) => ({
  privateKey: Secret.of(privateKey),
  ...(passphrase !== undefined && { passphrase: Secret.of(passphrase) }),
})
const lineOf = (publicLine: string) => publicLine.split(' ').slice(0, 2).join(' ')

const TERMS = {
  key: { type: 'ssh-ed25519', fields: Buffer.concat([Buffer.of(0, 0, 0, 32), Buffer.alloc(32, 9)]) },
  nonce: Buffer.alloc(32, 1),
  serial: 2n ** 64n - 1n,
  keyId: 'session=1 user=jörg',
  principals: ['root'],
  validAfter: 1_700_000_000,
  validBefore: 1_700_000_300,
  extensions: ['permit-pty', 'permit-X11-forwarding', 'permit-port-forwarding', 'permit-agent-forwarding'],
}

describe('a key of an authority', () => {
  it.each([
    ['ed25519', undefined],
    ['ecdsa', 256],
    ['ecdsa', 384],
    ['ecdsa', 521],
    ['rsa', 2048],
    ['rsa', 4096],
  ] as const)('%s %s: has the public line of ssh-keygen, and signs what is believed', (type, bits) => {
    const { file, line } = opensshKey(type, bits)
    const { pkcs8, publicKey } = readAuthorityKey(given(file))
    expect(publicKey).toBe(lineOf(line))
    // A signature's numbers may sometimes have leading zeros.
    for (let round = 0; round < 20; round++) {
      const certificate = parseCertificate(certify(authorityOf(pkcs8), { ...TERMS, serial: BigInt(round) }))
      const use = {
        authorities: [certificate.authority],
        user: 'root',
        source: '192.0.2.1',
        now: 1_700_000_100_000,
      }
      expect(flawOfCertificate(certificate, use)).toBeUndefined()
      expect(certificate.authority.blob.toString('base64')).toBe(publicKey.split(' ')[1])
    }
  })

  it('may be encrypted, PEM or PKCS#8', () => {
    const locked = opensshKey('ed25519', undefined, 'sesame')
    expect(readAuthorityKey(given(locked.file, 'sesame')).publicKey).toBe(lineOf(locked.line))
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
    const { privateKey: curve } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const lines = [
      privateKey.export({ format: 'pem', type: 'pkcs1' }),
      privateKey.export({ format: 'pem', type: 'pkcs8' }),
    ].map((pem) => readAuthorityKey(given(pem.toString())).publicKey)
    expect(new Set(lines).size).toBe(1)
    const sealed = { format: 'pem', type: 'pkcs8', cipher: 'aes-256-cbc', passphrase: 'sesame' } as const
    expect(readAuthorityKey(given(curve.export(sealed).toString(), 'sesame')).publicKey).toMatch(/^ecdsa/)
    expect(
      readAuthorityKey(given(curve.export({ format: 'pem', type: 'sec1' }).toString())).publicKey,
    ).toMatch(/^ecdsa/)
  })

  it.each<[string, () => [string, string?], string]>([
    ['nonsense', () => ['CANARY'], 'ca_private_key'],
    ['nothing', () => [''], 'ca_private_key'],
    ['a public key', () => [opensshKey('ed25519').line], 'ca_private_key'],
    ['too much', () => ['x'.repeat(65_537)], 'ca_private_key'],
    ['no passphrase', () => [opensshKey('ed25519', undefined, 'sesame').file], 'ca_passphrase'],
    [
      'a wrong passphrase',
      () => [opensshKey('ed25519', undefined, 'sesame').file, 'CANARY'],
      'ca_passphrase',
    ],
    ['RSA of 1024 bits', () => [opensshKey('rsa', 1024).file], 'ca_private_key'],
    ['another curve', () => [pemOf('secp256k1')], 'ca_private_key'],
    [
      'another kind',
      () => [generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()],
      'ca_private_key',
    ],
  ])('%s is refused, naming the field and nothing of the secret', (_, make, field) => {
    try {
      readAuthorityKey(given(...make()))
      expect.unreachable()
    } catch (error) {
      expect(error).toBeInstanceOf(CredentialError)
      expect(error).toMatchObject({ field })
      expect(String(error)).not.toContain('CANARY')
    }
  })

  const pemOf = (namedCurve: string) =>
    generateKeyPairSync('ec', { namedCurve }).privateKey.export({ format: 'pem', type: 'pkcs8' }).toString()
})

describe('a certificate', () => {
  it('says to ssh-keygen what was meant', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sallyport-cert-'))
    try {
      const { file } = opensshKey('ed25519')
      const blob = certify(authorityOf(readAuthorityKey(given(file)).pkcs8), TERMS)
      const path = join(folder, 'key-cert.pub')
      writeFileSync(path, `ssh-ed25519-cert-v01@openssh.com ${blob.toString('base64')}\n`)
      const shown = execFileSync('ssh-keygen', ['-L', '-f', path], {
        env: { ...process.env, TZ: 'UTC' },
      }).toString()
      expect(shown).toContain('ssh-ed25519-cert-v01@openssh.com user certificate')
      expect(shown).toContain('Serial: 18446744073709551615')
      expect(shown).toContain('Valid: from 2023-11-14T22:13:20 to 2023-11-14T22:18:20')
      expect(shown.replaceAll(/\s+/g, ' ')).toContain(
        'Principals: root Critical Options: (none) Extensions: permit-X11-forwarding permit-agent-forwarding permit-port-forwarding permit-pty',
      )
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it('has a principal, and one that is nobody else', () => {
    const { file } = opensshKey('ed25519')
    const authority = authorityOf(readAuthorityKey(given(file)).pkcs8)
    expect(() => certify(authority, { ...TERMS, principals: [] })).toThrow('principal')
    for (const login of ['', 'a,root', 'a root', 'a\nroot', 'a\troot', 'a\0', '"root"', '#root']) {
      expect(principalFlaw(login)).toBeDefined()
    }
    for (const login of ['root', 'svc@corp.example', 'CORP\\svc', 'jörg', 'a-b_c.d']) {
      expect(principalFlaw(login)).toBeUndefined()
    }
  })
})

describe('in the vault', () => {
  let temp: TemporaryStore
  beforeEach(async () => {
    temp = await temporaryStore()
  })
  afterEach(() => temp.remove())

  it('the key is sealed for its domain, replaced, and taken away', async () => {
    const estate = await smallEstate(temp.store)
    const other = await temp.store.domains.create({ domainName: 'other', description: '' })
    const vault = await openVault(temp.store, { file: join(dirname(temp.path), 'master.key') })
    const key = readAuthorityKey(given(opensshKey('ed25519').file))
    expect(await vault.authorityKey(estate.domain.id)).toBeUndefined()
    await vault.setAuthority(estate.domain.id, key)
    expect((await vault.authorityKey(estate.domain.id))?.equals(key.pkcs8)).toBe(true)
    const domain = await temp.store.domains.find(estate.domain.id)
    expect(domain).toMatchObject({ caPublicKey: key.publicKey, secretRevision: 1 })
    const sealed = (await temp.store.domains.sealedAuthority(estate.domain.id))!
    expect(Buffer.from(sealed).includes(key.pkcs8.reveal().subarray(-32))).toBe(false)
    await temp.store.domains.setSealedAuthority(other.id, { sealed, publicKey: key.publicKey })
    await expect(vault.authorityKey(other.id)).rejects.toThrow(UnsealError)
    await vault.setAuthority(estate.domain.id, undefined)
    expect(await vault.authorityKey(estate.domain.id)).toBeUndefined()
    const without = await temp.store.domains.find(estate.domain.id)
    expect(without?.caPublicKey).toBeUndefined()
    expect(without?.secretRevision).toBe(2)
  })

  it('goes with the domain', async () => {
    const vault = await openVault(temp.store, { file: join(dirname(temp.path), 'master.key') })
    const domain = await temp.store.domains.create({ domainName: 'corp', description: '' })
    await vault.setAuthority(domain.id, readAuthorityKey(given(opensshKey('ed25519').file)))
    await temp.store.domains.remove(domain.id)
    expect(await temp.store.domains.sealedAuthority(domain.id)).toBeUndefined()
  })
})

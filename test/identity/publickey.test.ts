import { describe, expect, it } from 'vitest'
import {
  fingerprintOf,
  isKeyOf,
  PublicKeyError,
  parseAuthorizedKey,
  parsePublicKey,
  verifySignedRequest,
} from '../../src/identity/publickey.ts'
import { type KeyPair, opensshKey, rsaKey, signedData, sshString } from './keys.ts'

const ed25519 = opensshKey('ed25519')
const rsa = opensshKey('rsa', 2048)
const smallRsa = rsaKey(1024)
const KINDS: [string, string | null, KeyPair][] = [
  ['ssh-ed25519', null, ed25519],
  ['ecdsa-sha2-nistp256', 'sha256', opensshKey('ecdsa', 256)],
  ['ecdsa-sha2-nistp384', 'sha384', opensshKey('ecdsa', 384)],
  ['ecdsa-sha2-nistp521', 'sha512', opensshKey('ecdsa', 521)],
  ['rsa-sha2-256', 'sha256', rsa],
  ['rsa-sha2-512', 'sha512', rsa],
]
const LOGIN = 'ops1+root@srv1'

describe.each(KINDS)('a signature by %s', (algorithm, hash, key) => {
  const data = signedData(LOGIN, algorithm, key.blob)
  const good = { login: LOGIN, key: key.blob, data, signature: key.sign(data, hash) }

  it('is accepted over the request for this login and key', () => {
    expect(parseAuthorizedKey(key.line)).toMatchObject({ blob: key.blob, comment: 'test key' })
    expect(verifySignedRequest(good)).toBe(true)
  })

  it('is refused when a bit of it or of the data is changed', () => {
    const flipped = (bytes: Uint8Array, at: number) =>
      bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))
    expect(
      verifySignedRequest({ ...good, signature: flipped(good.signature, good.signature.length - 1) }),
    ).toBe(false)
    expect(verifySignedRequest({ ...good, data: flipped(data, 10) })).toBe(false)
    expect(verifySignedRequest({ ...good, signature: new Uint8Array() })).toBe(false)
  })

  it('is refused for another login, another key, another request', () => {
    expect(verifySignedRequest({ ...good, login: 'admin' })).toBe(false)
    expect(verifySignedRequest({ ...good, key: opensshKey('ed25519').blob })).toBe(false)
    for (const other of [{ method: 'hostbased' }, { flag: 0 }]) {
      const wrong = signedData(LOGIN, algorithm, key.blob, other)
      expect(verifySignedRequest({ ...good, data: wrong, signature: key.sign(wrong, hash) })).toBe(false)
    }
    const longer = Buffer.concat([data, Buffer.of(0)])
    expect(verifySignedRequest({ ...good, data: longer, signature: key.sign(longer, hash) })).toBe(false)
  })
})

describe('a signature', () => {
  it('by RSA with SHA-1 is refused', () => {
    for (const algorithm of ['ssh-rsa', 'rsa-sha2-256']) {
      const data = signedData(LOGIN, algorithm, rsa.blob)
      const signature = rsa.sign(data, 'sha1')
      expect(verifySignedRequest({ login: LOGIN, key: rsa.blob, data, signature })).toBe(false)
    }
  })

  it('by an RSA key of 1024 bits is refused', () => {
    const data = signedData(LOGIN, 'rsa-sha2-512', smallRsa.blob)
    const signature = smallRsa.sign(data, 'sha512')
    expect(verifySignedRequest({ login: LOGIN, key: smallRsa.blob, data, signature })).toBe(false)
  })

  it('under the algorithm of another type of key is refused', () => {
    const data = signedData(LOGIN, 'ecdsa-sha2-nistp256', ed25519.blob)
    const signature = ed25519.sign(data, null)
    expect(verifySignedRequest({ login: LOGIN, key: ed25519.blob, data, signature })).toBe(false)
  })

  it('over bytes that are no request is refused', () => {
    for (const data of [
      Buffer.alloc(0),
      Buffer.alloc(100),
      Buffer.from('ffffffff', 'hex'),
      Buffer.alloc(20_000),
    ]) {
      const signature = ed25519.sign(data, null)
      expect(verifySignedRequest({ login: LOGIN, key: ed25519.blob, data, signature })).toBe(false)
    }
  })
})

describe('a public key', () => {
  it('has the fingerprint that ssh-keygen shows', () => {
    expect(fingerprintOf(ed25519.blob)).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/)
  })

  it.each([
    ['', 'TYPE BASE64'],
    ['ssh-ed25519', 'TYPE BASE64'],
    [`command="/bin/sh" ${ed25519.line}`, 'TYPE BASE64'],
    [`${ed25519.line}\n${ed25519.line}`, 'TYPE BASE64'],
    [ed25519.line.replace('ssh-ed25519', 'ssh-rsa'), 'the line says ssh-rsa'],
    [`ssh-ed25519 ${sshString('ssh-ed25519').toString('base64')}`, 'malformed'],
    [`ssh-dss ${sshString('ssh-dss').toString('base64')}`, 'not accepted'],
    [
      `sk-ssh-ed25519@openssh.com ${sshString('sk-ssh-ed25519@openssh.com').toString('base64')}`,
      'not accepted',
    ],
    ['ssh-ed25519 AAAA', 'cut short'],
    [`ssh-rsa ${sshString('ssh-rsa').toString('base64')}`, 'cut short'],
    [smallRsa.line, 'has 1024 bits: expected 2048 to 16384'],
    ['x'.repeat(9000), 'longer than'],
  ])('%j is refused', (line, message) => {
    expect(() => parseAuthorizedKey(line)).toThrow(PublicKeyError)
    expect(() => parseAuthorizedKey(line)).toThrow(message)
  })

  it('of RSA is refused with more than 16384 bits, or a long exponent, before any arithmetic', () => {
    const modulus = Buffer.alloc(2049, 0xff)
    const huge = Buffer.concat([sshString('ssh-rsa'), sshString(Buffer.of(1, 0, 1)), sshString(modulus)])
    expect(() => parsePublicKey(huge)).toThrow('has 16392 bits')
    const slow = Buffer.concat([
      sshString('ssh-rsa'),
      sshString(Buffer.alloc(300, 1)),
      sshString(modulus.subarray(0, 256)),
    ])
    expect(() => parsePublicKey(slow)).toThrow('exponent')
  })

  it('is compared byte by byte', () => {
    const [type = '', base64 = ''] = ed25519.line.split(' ')
    expect(isKeyOf(['not a key', '', ed25519.line], ed25519.blob)).toBe(true)
    expect(isKeyOf([`${type} ${base64.toLowerCase()}`], ed25519.blob)).toBe(false)
    expect(isKeyOf([`${type} ${base64.slice(0, -4)}`], ed25519.blob)).toBe(false)
    expect(isKeyOf(['', 'x', 'ssh-ed25519 '], new Uint8Array())).toBe(false)
  })
})

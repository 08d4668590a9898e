import { describe, expect, it } from 'vitest'
import {
  fingerprintOf,
  isKeyOf,
  PublicKeyError,
  parseAuthorizedKey,
  parsePublicKey,
} from '../../src/identity/public-key.ts'
import { verifySignedRequest } from '../../src/identity/signature.ts'
import { fidoKey, type KeyPair, opensshKey, rsaKey, signedData, sshString } from './keys.ts'

const ed25519 = opensshKey('ed25519')
const rsa = opensshKey('rsa', 2048)
const smallRsa = rsaKey(1024)
const KINDS: [string, KeyPair][] = [
  ['ssh-ed25519', ed25519],
  ['ecdsa-sha2-nistp256', opensshKey('ecdsa', 256)],
  ['ecdsa-sha2-nistp384', opensshKey('ecdsa', 384)],
  ['ecdsa-sha2-nistp521', opensshKey('ecdsa', 521)],
  ['rsa-sha2-256', rsa],
  ['rsa-sha2-512', rsa],
]
const LOGIN = 'ops1+root@srv1'

const verify = (pair: { blob: Buffer }, data: Uint8Array, signature: Uint8Array, login = LOGIN) =>
  verifySignedRequest({ login, offered: pair.blob, key: parsePublicKey(pair.blob), data, signature })
const flipped = (bytes: Uint8Array, at: number) =>
  bytes.map((byte, index) => (index === at ? byte ^ 1 : byte))

describe.each(KINDS)('a signature by %s', (algorithm, key) => {
  const data = signedData(LOGIN, algorithm, key.blob)
  const signature = key.sign(data, algorithm)

  it('is accepted over the request for this login and key', () => {
    expect(parseAuthorizedKey(key.line)).toMatchObject({ blob: key.blob, comment: 'test key' })
    for (let n = 0; n < 20; n++) {
      expect(verify(key, data, key.sign(data, algorithm))).toEqual({ algorithm, userVerified: false })
    }
  })

  it('is refused when a bit of it or of the data is changed, or a byte added or taken away', () => {
    for (let at = 0; at < signature.length; at++)
      expect(verify(key, data, flipped(signature, at))).toBeUndefined()
    expect(verify(key, flipped(data, 10), signature)).toBeUndefined()
    expect(verify(key, data, new Uint8Array())).toBeUndefined()
    expect(verify(key, data, signature.subarray(0, -1))).toBeUndefined()
    expect(verify(key, data, Buffer.concat([signature, Buffer.of(0)]))).toBeUndefined()
  })

  it('is refused for another login, another key, another request', () => {
    expect(verify(key, data, signature, 'admin')).toBeUndefined()
    expect(verify(opensshKey('ed25519'), data, signature)).toBeUndefined()
    for (const other of [{ method: 'hostbased' }, { flag: 0 }]) {
      const wrong = signedData(LOGIN, algorithm, key.blob, other)
      expect(verify(key, wrong, key.sign(wrong, algorithm))).toBeUndefined()
    }
    const longer = Buffer.concat([data, Buffer.of(0)])
    expect(verify(key, longer, key.sign(longer, algorithm))).toBeUndefined()
  })

  it('is refused when the request names another algorithm than the signature', () => {
    const other = algorithm === 'rsa-sha2-512' ? 'rsa-sha2-256' : 'rsa-sha2-512'
    const wrong = signedData(LOGIN, other, key.blob)
    expect(verify(key, wrong, key.sign(wrong, algorithm))).toBeUndefined()
  })
})

describe('a signature', () => {
  it('by RSA with SHA-1 is refused, whatever it is called', () => {
    for (const algorithm of ['ssh-rsa', 'rsa-sha2-256']) {
      const data = signedData(LOGIN, algorithm, rsa.blob)
      for (const name of ['ssh-rsa', 'rsa-sha2-256']) {
        expect(verify(rsa, data, rsa.sign(data, name, 'sha1'))).toBeUndefined()
      }
    }
  })

  it('under the algorithm of another type of key is refused', () => {
    const data = signedData(LOGIN, 'ecdsa-sha2-nistp256', ed25519.blob)
    expect(verify(ed25519, data, ed25519.sign(data, 'ssh-ed25519'))).toBeUndefined()
  })

  it('over bytes that are no request is refused', () => {
    for (const data of [
      Buffer.alloc(0),
      Buffer.alloc(100),
      Buffer.from('ffffffff', 'hex'),
      Buffer.alloc(70_000),
    ]) {
      expect(verify(ed25519, data, ed25519.sign(data, 'ssh-ed25519'))).toBeUndefined()
    }
  })
})

describe.each(['sk-ssh-ed25519@openssh.com', 'sk-ecdsa-sha2-nistp256@openssh.com'])(
  'a token with %s',
  (type) => {
    const token = fidoKey(type)
    const data = signedData(LOGIN, type, token.blob)

    it('signs when its user is present, at any count', () => {
      expect(parseAuthorizedKey(token.line).type).toBe(type)
      for (const counter of [0, 1, 0xffffffff]) {
        const signature = token.sign(data, { flags: 0x01, counter })
        expect(verify(token, data, signature)).toEqual({ algorithm: type, userVerified: false })
      }
      expect(verify(token, data, token.sign(data, { flags: 0x05 }))).toMatchObject({ userVerified: true })
    })

    it('does not count without its user, verified or not', () => {
      for (const flags of [0x00, 0x04, 0xfe])
        expect(verify(token, data, token.sign(data, { flags }))).toBeUndefined()
    })

    it('does not count when flags, counter or application are other than it signed', () => {
      const signature = token.sign(data, { flags: 0x01, counter: 7 })
      for (let at = signature.length - 5; at < signature.length; at++)
        expect(verify(token, data, flipped(signature, at))).toBeUndefined()
      expect(verify(token, data, signature.subarray(0, -5))).toBeUndefined()
      expect(verify(token, data, signature.subarray(0, -1))).toBeUndefined()
      expect(verify(token, data, Buffer.concat([signature, Buffer.of(0)]))).toBeUndefined()
      const elsewhere = token.sign(data, { flags: 0x01, application: 'https://elsewhere' })
      expect(verify(token, data, elsewhere)).toBeUndefined()
    })

    it('does not sign as a plain key', () => {
      const plain = type.includes('ed25519') ? 'ssh-ed25519' : 'ecdsa-sha2-nistp256'
      const other = signedData(LOGIN, plain, token.blob)
      expect(verify(token, other, token.sign(other, { flags: 0x01 }))).toBeUndefined()
      expect(verify(token, data, token.signPlainly(data, plain))).toBeUndefined()
      expect(verify(token, data, token.signPlainly(data, type))).toBeUndefined()
    })
  },
)

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
    [`ssh-ed25519 ${sshString('ssh-ed25519').toString('base64')}`, 'cut short'],
    [`ssh-dss ${sshString('ssh-dss').toString('base64')}`, 'not accepted'],
    [`sk-ssh-ed25519@openssh.com ${sshString('sk-ssh-ed25519@openssh.com').toString('base64')}`, 'cut short'],
    [
      `webauthn-sk-ecdsa-sha2-nistp256@openssh.com ${sshString('webauthn-sk-ecdsa-sha2-nistp256@openssh.com').toString('base64')}`,
      'not accepted',
    ],
    [`ssh-ed25519 ${Buffer.concat([ed25519.blob, Buffer.of(0)]).toString('base64')}`, 'longer than'],
    [smallRsa.line, 'has 1024 bits'],
    ['ssh-ed25519 AAAA', 'cut short'],
    [`ssh-rsa ${sshString('ssh-rsa').toString('base64')}`, 'cut short'],
    [smallRsa.line, 'has 1024 bits: expected 2048 to 16384'],
    ['x'.repeat(9000), 'longer than'],
  ])('%j is refused', (line, message) => {
    expect(() => parseAuthorizedKey(line)).toThrow(PublicKeyError)
    expect(() => parseAuthorizedKey(line)).toThrow(message)
  })

  it('of RSA is refused with more than 16384 bits, or a long exponent, before any arithmetic', () => {
    const modulus = Buffer.concat([Buffer.of(0), Buffer.alloc(2049, 0xff)])
    const huge = Buffer.concat([sshString('ssh-rsa'), sshString(Buffer.of(1, 0, 1)), sshString(modulus)])
    expect(() => parsePublicKey(huge)).toThrow('has 16392 bits')
    const slow = Buffer.concat([
      sshString('ssh-rsa'),
      sshString(Buffer.alloc(300, 1)),
      sshString(modulus.subarray(0, 257)),
    ])
    expect(() => parsePublicKey(slow)).toThrow('more than 64 bits')
    const anybodys = Buffer.concat([
      sshString('ssh-rsa'),
      sshString(Buffer.of(1)),
      sshString(modulus.subarray(0, 257)),
    ])
    expect(() => parsePublicKey(anybodys)).toThrow('is 1')
  })

  it('is compared byte by byte', () => {
    const [type = '', base64 = ''] = ed25519.line.split(' ')
    expect(isKeyOf(['not a key', '', ed25519.line], ed25519.blob)).toBe(true)
    expect(isKeyOf([`${type} ${base64.toLowerCase()}`], ed25519.blob)).toBe(false)
    expect(isKeyOf([`${type} ${base64.slice(0, -4)}`], ed25519.blob)).toBe(false)
    expect(isKeyOf(['', 'x', 'ssh-ed25519 '], new Uint8Array())).toBe(false)
  })
})

import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Sshfp } from '../../src/dns/sshfp.ts'
import { flawOfSshfp } from '../../src/identity/sshfp.ts'

const blob = Buffer.from('a key')
const sha256 = createHash('sha256').update(blob).digest()
const sha1 = createHash('sha1').update(blob).digest()
const good: Sshfp = { algorithm: 4, digest: 2, fingerprint: sha256 }
const flaw = (records: Sshfp[], isAuthenticated = true, type = 'ssh-ed25519') =>
  flawOfSshfp({ isAuthenticated, records }, type, blob)

test('the key has to be named by its algorithm and SHA-256, authentically', () => {
  expect(flaw([good])).toBeUndefined()
  expect(flaw([{ ...good, fingerprint: Buffer.alloc(32) }, good])).toBeUndefined()
  expect(flaw([good], false)).toBe('unauthenticated')
  expect(flaw([])).toBe('missing')
  expect(flaw([], false)).toBe('missing')
  expect(flaw([{ ...good, digest: 1, fingerprint: sha1 }])).toBe('weak')
  expect(flaw([{ ...good, digest: 3 }])).toBe('weak')
  expect(flaw([{ ...good, algorithm: 3 }])).toBe('differs')
  expect(flaw([{ ...good, fingerprint: sha256.subarray(0, 31) }])).toBe('differs')
  expect(flaw([{ ...good, fingerprint: Buffer.concat([sha256, sha256]) }])).toBe('differs')
})

test.each([
  ['ssh-rsa', 1],
  ['ssh-dss', 2],
  ['ecdsa-sha2-nistp256', 3],
  ['ecdsa-sha2-nistp384', 3],
  ['ecdsa-sha2-nistp521', 3],
  ['ssh-ed25519', 4],
])('%s is %i', (type, algorithm) => {
  expect(flaw([{ ...good, algorithm }], true, type)).toBeUndefined()
  expect(flaw([{ ...good, algorithm: algorithm + 1 }], true, type)).toBe('differs')
})

test('a key of another type is not named by any record', () => {
  for (const type of ['ssh-ed448', '__proto__', 'constructor', 'sk-ssh-ed25519@openssh.com']) {
    for (let algorithm = 0; algorithm < 256; algorithm++) {
      expect(flaw([{ ...good, algorithm }], true, type)).toBe('differs')
    }
  }
})

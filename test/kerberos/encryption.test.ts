import { describe, expect, test } from 'vitest'
import { decryptCts, encryptCts } from '../../src/kerberos/cts.ts'
import { deriveSha2, encryptionType, IntegrityError } from '../../src/kerberos/encryption.ts'
import { nfold } from '../../src/kerberos/nfold.ts'

const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')
const rounds = (count: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(count)
  return bytes
}

test.each([
  ['012345', 8, 'be072631276b1955'],
  ['password', 7, '78a07b6caf85fa'],
  ['kerberos', 16, '6b65726265726f737b9b5b2b93132b93'],
  ['kerberos', 32, '6b65726265726f737b9b5b2b93132b935c9bdcdad95c9899c4cae4dee6d6cae4'],
])('n-fold of %s to %i bytes (RFC 3961 A.1)', (text, size, expected) => {
  expect(nfold(Buffer.from(text), size).toString('hex')).toBe(expected)
})

describe('ciphertext stealing (RFC 3962 B)', () => {
  const key = Buffer.from('chicken teriyaki')
  test.each([
    ['I would like the ', 'c6353568f2bf8cb4d8a580362da7ff7f97'],
    ["I would like the General Gau's ", 'fc00783e0efdb2c1d445d4c8eff7ed2297687268d6ecccc0c07b25e25ecfe5'],
    ["I would like the General Gau's C", '39312523a78662d5be7fcbcc98ebf5a897687268d6ecccc0c07b25e25ecfe584'],
  ])('%s', (plain, expected) => {
    expect(encryptCts(key, Buffer.from(plain)).toString('hex')).toBe(expected)
    expect(decryptCts(key, hex(expected)).toString()).toBe(plain)
  })
})

test.each([
  [17, 1, 'ATHENA.MIT.EDUraeburn', '42263c6e89f4fc28b8df68ee09799f15'],
  [18, 1, 'ATHENA.MIT.EDUraeburn', 'fe697b52bc0d3ce14432ba036a92e65bbb52280990a2fa27883998d72af30161'],
])('key of a password, type %i (RFC 3962 B)', async (number, count, salt, expected) => {
  const key = await encryptionType(number)!.keyOf(Buffer.from('password'), salt, rounds(count))
  expect(key.toString('hex')).toBe(expected)
})

test('derived keys, a checksum and an encryption with SHA-256 (RFC 8009 A)', () => {
  const key = hex('3705D96080C17728A0E800EAB6E0D23C')
  expect(deriveSha2('sha256', key, hex('0000000299'), 16)).toEqual(hex('B31A018A48F54776F403E9A396325DC3'))
  const type = encryptionType(19)!
  expect(type.checksum(key, 2, hex('000102030405060708090A0B0C0D0E0F1011121314'))).toEqual(
    hex('D78367186643D67B411CBA9139FC1DEE'),
  )
  const sealed = hex('EF85FB890BB8472F4DAB20394DCA781DAD877EDA39D50C870C0D5A0A8E48C718')
  expect(type.encrypt(key, 2, Buffer.alloc(0), hex('7E5895EAF2672435BAD817F545A37148'))).toEqual(sealed)
  expect(type.decrypt(key, 2, sealed)).toHaveLength(0)
})

test.each([17, 18, 19, 20])('type %i: what was altered, or is of another usage, is refused', (number) => {
  const type = encryptionType(number)!
  const key = Buffer.alloc(type.keyBytes, 7)
  for (const length of [0, 1, 15, 16, 17, 31, 32, 33, 100]) {
    const plain = Buffer.alloc(length, 3)
    const sealed = type.encrypt(key, 3, plain)
    expect(type.decrypt(key, 3, sealed)).toEqual(plain)
    expect(() => type.decrypt(key, 4, sealed)).toThrow(IntegrityError)
    for (let at = 0; at < sealed.length; at++) {
      const altered = Buffer.from(sealed)
      altered[at]! ^= 1
      expect(() => type.decrypt(key, 3, altered)).toThrow(IntegrityError)
    }
    expect(() => type.decrypt(key, 3, sealed.subarray(0, 20))).toThrow(IntegrityError)
  }
})

test('weak types are not spoken, and no KDC may ask for endless rounds', async () => {
  for (const number of [1, 3, 16, 23, 24]) expect(encryptionType(number)).toBeUndefined()
  const keyOf = encryptionType(18)!.keyOf
  for (const asked of [rounds(0), rounds(1_000_001), Buffer.alloc(3)])
    await expect(keyOf(Buffer.from('x'), 'salt', asked)).rejects.toThrow('1 to 1000000 rounds')
})

/** MD4 and RC4 against their RFCs. */
import { Buffer } from 'node:buffer'
import { expect, test } from 'vitest'
import { Rc4 } from '../../../../proxies/rdp/ntlm/rc4.ts'
import { md4 } from '../../../../src/model/md4.ts'

// RFC 1320 A.5.
test.each([
  ['', '31d6cfe0d16ae931b73c59d7e0c089c0'],
  ['a', 'bde52cb31de33e46245e05fbdbd6fb24'],
  ['abc', 'a448017aaf21d8525fc10ae87aa6729d'],
  ['message digest', 'd9130a8164549fe818874806e1c7014b'],
  ['abcdefghijklmnopqrstuvwxyz', 'd79e1c308aa5bbcdeea8ed63df412da9'],
  ['ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789', '043f8582f241db351ce627e153e7f0e4'],
  [
    '12345678901234567890123456789012345678901234567890123456789012345678901234567890',
    'e33b4ddc9c38f2199c3e7b164fcc0536',
  ],
])('MD4 of %j', (message, digest) => {
  expect(md4(Buffer.from(message)).toString('hex')).toBe(digest)
})

test.each([55, 56, 63, 64, 119, 120])('MD4 of %i bytes pads to whole blocks', (length) => {
  expect(md4(Buffer.alloc(length, 1))).not.toEqual(md4(Buffer.alloc(length + 1, 1)))
})

// RFC 6229 2: the first 16 bytes, and those at 4096.
test.each([
  ['0102030405', 'b2396305f03dc027ccc3524a0a1118a8', 'ff25b58995996707e51fbdf08b34d875'],
  [
    '0102030405060708090a0b0c0d0e0f10',
    '9ac7cc9a609d1ef7b2932899cde41b97',
    'a36a4c301ae8ac13610ccbc12256cacc',
  ],
])('RC4 with key %s', (key, first, later) => {
  const stream = new Rc4(Buffer.from(key, 'hex'))
  const bytes = Buffer.concat([stream.apply(Buffer.alloc(1000)), stream.apply(Buffer.alloc(3112))])
  expect(bytes.toString('hex', 0, 16)).toBe(first)
  expect(bytes.toString('hex', 4096, 4112)).toBe(later)
})

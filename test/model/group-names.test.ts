import fc from 'fast-check'
import { expect, test } from 'vitest'
import { groupKey } from '../../src/model/group-names.ts'

test.each([
  ['CN=Admins,DC=Lab', 'cn=admins, dc=lab'],
  ['cn=a\\,b,dc=lab', 'cn=a\\2cb,dc=lab'],
  ['cn=a\\2Cb ,dc=lab', 'CN = a\\,b ; DC=LAB'],
  ['cn=zo\\c3\\ab', 'cn=Zoë'],
  ['cn=a+uid=b,dc=lab', 'CN=A + UID=b,dc=lab'],
  ['  admins ', 'ADMINS'],
])('%s is %s', (one, other) => {
  expect(groupKey(one)).toBe(groupKey(other))
})

test.each([
  ['cn=admins,dc=lab', 'admins'],
  ['cn=a,cn=b', 'cn=a\\,cn\\=b'],
  ['cn=a\\,b,dc=lab', 'cn=a,b,dc=lab'],
  ['cn=a b', 'cn=ab'],
  ['cn=a\\ ', 'cn=a'],
  ['cn=a+uid=b', 'cn=a,uid=b'],
  ['cn=a', 'ou=a'],
])('%s is not %s', (one, other) => {
  expect(groupKey(one)).not.toBe(groupKey(other))
})

test('any text has a key, and spelling with hexadecimal escapes does not change it', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }), (value) => {
      const hex = [...Buffer.from(value)].map((byte) => `\\${byte.toString(16).padStart(2, '0')}`).join('')
      expect(groupKey(`cn=${hex},dc=lab`)).toBe(groupKey(`CN=${hex.toUpperCase()} , DC=lab`))
      expect(typeof groupKey(value)).toBe('string')
    }),
  )
})

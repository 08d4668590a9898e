/** Bytes made without care: each reader ends with its own errors, in bounded time. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { context, der, integer, octets, sequence } from '../../proxies/bytes/der.ts'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { encryptionType, IntegrityError } from '../../src/kerberos/encryption.ts'
import { apReply, readApReply } from '../../src/kerberos/exchange.ts'
import { text, time } from '../../src/kerberos/fields.ts'
import { frameOf, KIND, readFrame } from '../../src/kerberos/gss.ts'
import { readKeytab } from '../../src/kerberos/keytab.ts'
import { asRequest, readKdcAnswer, readTicket, requestBody } from '../../src/kerberos/messages.ts'
import { provePassword } from '../../src/kerberos/password.ts'
import { keyOf } from './client.ts'
import { keytabOf } from './keytab.ts'

const entry = { realm: 'LAB', components: ['host', 'b'], version: 300, type: 18, key: Buffer.alloc(32, 9) }
const keytab = keytabOf([entry, { ...entry, type: 23, key: Buffer.alloc(16) }])
const error = der(
  0x7e,
  sequence(
    context(0, integer(5)),
    context(1, integer(30)),
    context(4, time(0)),
    context(5, integer(0)),
    context(6, integer(25)),
    context(9, text('LAB')),
    context(
      12,
      octets(
        sequence(
          sequence(
            context(1, integer(19)),
            context(2, octets(sequence(sequence(context(0, integer(18)), context(1, text('salt')))))),
          ),
        ),
      ),
    ),
  ),
)

test('a keytab gives its AES keys with their long versions, and passes the others and holes by', () => {
  const hole = Buffer.concat([keytab, Buffer.from([255, 255, 255, 254, 7, 7])])
  for (const bytes of [keytab, hole])
    expect(readKeytab(bytes)).toEqual([
      {
        realm: 'LAB',
        components: ['host', 'b'],
        version: 300,
        key: { type: encryptionType(18), bytes: Buffer.alloc(32, 9) },
      },
    ])
  expect(() => readKeytab(keytab.subarray(0, 30))).toThrow(MalformedError)
  expect(() => readKeytab(Buffer.from([5, 1]))).toThrow('version 0x0502')
  expect(() => readKeytab(Buffer.alloc(70_000))).toThrow('2 to 65536 bytes')
})

test('an error says the salt of the key', () => {
  expect(readKdcAnswer(error, 'AS_REP')).toMatchObject({ code: 25, hints: [{ type: 18, salt: 'salt' }] })
})

const altered = (bytes: Uint8Array) =>
  fc
    .tuple(fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 4 }), fc.nat(bytes.length))
    .map(([changes, end]) => {
      const copy = Buffer.from(bytes)
      for (const [at, value] of changes) copy[at] = value
      return copy.subarray(0, end)
    })
const calm = (read: (bytes: Uint8Array) => unknown) => (bytes: Uint8Array) => {
  try {
    read(bytes)
  } catch (caught) {
    expect(caught).toBeInstanceOf(MalformedError)
  }
}

test('altered bytes are refused as malformed', () => {
  fc.assert(fc.property(altered(keytab), calm(readKeytab)), { numRuns: 300 })
  for (const bytes of [
    error,
    asRequest(requestBody({ client: 'a', realm: 'LAB', service: ['b'], till: 0, nonce: 1 })),
  ])
    for (const kind of ['AS_REP', 'TGS_REP'] as const)
      fc.assert(
        fc.property(
          altered(bytes),
          calm((one) => readKdcAnswer(one, kind)),
        ),
        { numRuns: 300 },
      )
  fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), calm(readTicket)), { numRuns: 300 })
  fc.assert(fc.property(altered(frameOf(KIND.ERROR, error)), calm(readFrame)), { numRuns: 300 })
  const sealed = apReply({ time: 0, micros: 5 }, keyOf(7), 3)
  const readReply = (bytes: Uint8Array) => {
    try {
      readApReply(bytes, keyOf(7))
    } catch (caught) {
      if (!(caught instanceof IntegrityError)) throw caught
    }
  }
  fc.assert(fc.property(altered(sealed), calm(readReply)), { numRuns: 300 })
})

test('a KDC that wants RC4, or asks again and again, proves nothing', async () => {
  let asked = 0
  const proof = (answer: Uint8Array) =>
    provePassword({
      realm: 'LAB',
      userName: 'alice',
      password: Buffer.from('x'),
      service: ['host', 'b'],
      keys: readKeytab(keytab),
      now: Date.now,
      ask: async () => {
        asked++
        return answer
      },
    })
  await expect(proof(error)).rejects.toThrow('error 25')
  expect(asked).toBe(2)
  const weak = Buffer.from(error)
  weak[weak.indexOf(Buffer.from([2, 1, 18])) + 2] = 23
  await expect(proof(weak)).rejects.toThrow('the KDC offers 23')
})

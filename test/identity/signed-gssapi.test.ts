/** The data that is signed for gssapi-with-mic. */
import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { signedGssapiData } from '../../proxies/ssh/codec/gssapi.ts'
import { isSignedGssapi } from '../../src/identity/signed-gssapi.ts'

const session = Buffer.alloc(32, 7)

test('it is about this login string, on a connection with a session identifier', () => {
  expect(isSignedGssapi(signedGssapiData(session, 'ålice@CORP:root@srv1'), 'ålice@CORP:root@srv1')).toBe(true)
  expect(isSignedGssapi(signedGssapiData(session, 'alice'), 'alic')).toBe(false)
  for (const length of [0, 19, 65])
    expect(isSignedGssapi(signedGssapiData(Buffer.alloc(length), 'alice'), 'alice')).toBe(false)
})

test('altered data is not', () => {
  const data = signedGssapiData(session, 'alice')
  fc.assert(
    fc.property(
      fc.integer({ min: 36, max: data.length - 1 }),
      fc.nat(255),
      fc.nat(data.length),
      (at, value, end) => {
        const copy = Buffer.from(data)
        copy[at] = value
        expect(isSignedGssapi(copy.subarray(0, end), 'alice')).toBe(copy.equals(data) && end === data.length)
      },
    ),
  )
})

import { Buffer } from 'node:buffer'
import { createHash, createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  ATTRIBUTES,
  hidePassword,
  RadiusError,
  readReply,
  writeRequest,
} from '../../src/identity/methods/radius/packet.ts'
import { personOf } from '../../src/identity/methods/radius/person.ts'
import { ipv6Octets, pause } from '../../src/identity/methods/radius/socket.ts'

const secret = Buffer.from('lab-secret')
const authenticator = Buffer.alloc(16, 7)
const check = { request: { id: 9, authenticator }, secret, requireMessageAuthenticator: true }
const bytes = (maxLength: number) => fc.uint8Array({ maxLength })

/** Returns a reply with both checksums right, whatever its attributes are. */
function signed(attributes: Uint8Array): Buffer {
  const packet = Buffer.concat([Buffer.alloc(20), Buffer.from([80, 18]), Buffer.alloc(16), attributes])
  packet[0] = 2
  packet[1] = 9
  packet.writeUInt16BE(packet.length, 2)
  packet.set(authenticator, 4)
  packet.set(createHmac('md5', secret).update(packet).digest(), 22)
  packet.set(createHash('md5').update(packet).update(secret).digest(), 4)
  return packet
}

test('the example of RFC 2865 7.1 comes out as written there', () => {
  const asked = Buffer.from('0f403f9473978057bd83d5cb98f4227a', 'hex')
  const key = Buffer.from('xyzzy5461')
  const hidden = hidePassword(Buffer.from('arctangent'), asked, key)
  expect(hidden.toString('hex')).toBe('0dbe708d93d413ce3196e43f782a0aee')
  const reply = Buffer.from(
    '0200002686fe220e7624ba2a1005f6bf9b55e0b20606000000010f06000000000e06c0a80103',
    'hex',
  )
  const example = {
    request: { id: 0, authenticator: asked },
    secret: key,
    requireMessageAuthenticator: false,
  }
  expect(readReply(reply, example).attributes.map(({ type }) => type)).toEqual([6, 15, 14])
  expect(() => readReply(reply, { ...example, requireMessageAuthenticator: true })).toThrow(
    'no Message-Authenticator',
  )
})

test('random datagrams are refused in words', () => {
  fc.assert(
    fc.property(bytes(5000), (datagram) => {
      expect(() => readReply(datagram, check)).toThrow(RadiusError)
    }),
  )
})

test('random attributes of a proved reply are read or refused in words', () => {
  fc.assert(
    fc.property(bytes(4058), fc.constantFrom('Filter-Id', 'Class', '9:1', '26'), (attributes, group) => {
      try {
        const { groups } = personOf('alice', readReply(signed(attributes), check).attributes, { group })
        expect(groups.every((name) => !/\p{Cc}/u.test(name))).toBe(true)
      } catch (error) {
        expect(error).toBeInstanceOf(RadiusError)
      }
    }),
  )
})

test('no octet of a reply can be changed', () => {
  const attributes = Buffer.from([11, 8, ...Buffer.from('netops')])
  const whole = signed(attributes)
  expect(readReply(whole, check).attributes).toHaveLength(1)
  for (let at = 0; at < whole.length; at++) {
    const changed = Buffer.from(whole)
    changed[at]! ^= 1
    expect(() => readReply(changed, check), `octet ${at}`).toThrow(RadiusError)
  }
})

test('requests carry what was given, and too long ones are refused', () => {
  const value = fc.record({ type: fc.constantFrom(1, 24, 31, 32), value: bytes(300) })
  fc.assert(
    fc.property(fc.array(value, { maxLength: 20 }), (attributes) => {
      const request = { code: 1, id: 9, authenticator, attributes }
      const length = attributes.reduce((sum, each) => sum + 2 + each.value.length, 38)
      if (length > 4096 || attributes.some((each) => each.value.length > 253))
        expect(() => writeRequest(request, secret)).toThrow(RadiusError)
      else {
        const packet = writeRequest(request, secret)
        expect(packet.readUInt16BE(2)).toBe(packet.length)
        expect(packet).toHaveLength(length)
        expect(packet[20]).toBe(ATTRIBUTES.messageAuthenticator)
      }
    }),
  )
})

test('addresses and pauses', () => {
  expect(Buffer.from(ipv6Octets('::1')).toString('hex')).toBe(`${'0'.repeat(31)}1`)
  expect(Buffer.from(ipv6Octets('fe80::1%lo')).toString('hex')).toBe(`fe80${'0'.repeat(27)}1`)
  expect(Buffer.from(ipv6Octets('2001:db8:1:2:3:4:5:6')).toString('hex')).toBe(
    '20010db8000100020003000400050006',
  )
  const pauses = [0, 1, 2].map((nth) => pause(nth, 3, 7000))
  expect(pauses).toEqual([1000, 2000, 4000])
})

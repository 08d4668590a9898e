/** PROXY headers by their specification, and with each of its bytes wrong. */
import { expect, test } from 'vitest'
import { MAX_BLOCK } from '../../src/balancers/block.ts'
import { ProxyHeaderError } from '../../src/balancers/claim.ts'
import { crc32c } from '../../src/balancers/crc32c.ts'
import { readHeader } from '../../src/balancers/header.ts'
import { blockHeader, FAMILIES, field, withChecksum } from './headers.ts'

const TCP4 = { family: FAMILIES.tcp4, addresses: Buffer.from('c0000207c63364010bb80016', 'hex') }
const OF_TCP4 = { client: { address: '192.0.2.7', port: 3000 } }
const TCP6 = {
  family: FAMILIES.tcp6,
  addresses: Buffer.from(`20010db8${'0'.repeat(23)}7${'0'.repeat(31)}1ffff0016`, 'hex'),
}

const line = (text: string) => Buffer.from(`${text}\r\n`, 'latin1')
const errorOf = (bytes: Buffer): ProxyHeaderError => {
  try {
    readHeader(bytes)
  } catch (error) {
    expect(error).toBeInstanceOf(ProxyHeaderError)
    return error as ProxyHeaderError
  }
  throw new Error('no error')
}

test.each([
  ['version 1, IPv4', line('PROXY TCP4 192.0.2.7 198.51.100.1 3000 22'), OF_TCP4],
  [
    'of the greatest length',
    line(`PROXY TCP6 ${'ffff:'.repeat(7)}ffff ${'ffff:'.repeat(7)}ffff 65535 65535`),
    {
      client: { address: 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', port: 65535 },
    },
  ],
  [
    'version 1, IPv6 in another form',
    line('PROXY TCP6 2001:DB8:0:0::7 ::1 65535 0'),
    {
      client: { address: '2001:db8::7', port: 65535 },
    },
  ],
  ['version 1, IPv4 as IPv6', line('PROXY TCP6 ::ffff:192.0.2.7 ::1 3000 22'), OF_TCP4],
  ['version 1, the shortest', line('PROXY TCP6 :: :: 0 0'), { client: { address: '::', port: 0 } }],
  ['version 1, unknown', line('PROXY UNKNOWN'), { client: undefined }],
  ['version 1, unknown with more', line('PROXY UNKNOWN ffff::1 ffff::2 1 2'), { client: undefined }],
  ['version 2, IPv4', blockHeader(TCP4), OF_TCP4],
  ['version 2, IPv4 of a datagram (QUIC)', blockHeader({ ...TCP4, family: 0x12 }), OF_TCP4],
  ['version 2, IPv6', blockHeader(TCP6), { client: { address: '2001:db8::7', port: 65535 } }],
  [
    'version 2, IPv4 as IPv6',
    blockHeader({
      family: FAMILIES.tcp6,
      addresses: Buffer.from(`${'0'.repeat(20)}ffffc0000207${'0'.repeat(32)}0bb80016`, 'hex'),
    }),
    OF_TCP4,
  ],
  [
    'version 2, Unix',
    blockHeader({ family: FAMILIES.unix, addresses: Buffer.alloc(216, 'a') }),
    { client: undefined },
  ],
  [
    'version 2, no family',
    blockHeader({ family: 0, addresses: Buffer.from('anything') }),
    { client: undefined },
  ],
  ['version 2, a health check', blockHeader({ command: 0, family: 0 }), { client: undefined }],
  [
    'version 2, a health check with what is to be ignored',
    blockHeader({ ...TCP4, command: 0, family: 0xff }),
    {
      client: undefined,
    },
  ],
  [
    'version 2 with fields',
    blockHeader({ ...TCP4, fields: [field(0x05, 'id'), field(0xe0, ''), field(4, 'noop')] }),
    OF_TCP4,
  ],
  ['version 2 with its checksum', withChecksum({ ...TCP4, fields: [field(0x05, 'id')] }), OF_TCP4],
  [
    'version 2 of the greatest length',
    blockHeader({ ...TCP4, fields: [field(0xe0, 'x'.repeat(MAX_BLOCK - 15))] }),
    OF_TCP4,
  ],
])('%s', (_title, header, claim) => {
  expect(readHeader(header)).toEqual({ claim })
})

test.each([
  ['SSH', Buffer.from('SSH-2.0-OpenSSH_9.2'), 'got "SSH-2.0-OpenSSH"'],
  ['one byte of TLS', Buffer.from([0x16]), 'got the bytes 16'],
  ['a Telnet client that sends a line end', Buffer.from('\r\n\r\n\0\r\nQUIX'), 'got the bytes 0d0a'],
  ['a header in small letters', Buffer.from('proxy TCP4'), 'got "proxy TCP4"'],
])('other bytes are no header: %s', (_title, bytes, message) => {
  const error = errorOf(bytes)
  expect([error.fault, error.message]).toEqual(['missing', expect.stringContaining(message)])
})

test.each([
  ['another family', 'PROXY UDP4 192.0.2.7 192.0.2.1 1 2', 'neither TCP4, TCP6 nor UNKNOWN'],
  ['IPv4 with an IPv6 address', 'PROXY TCP4 2001:db8::7 192.0.2.1 1 2', 'without addresses'],
  ['IPv6 with an IPv4 address', 'PROXY TCP6 192.0.2.7 ::1 1 2', 'without addresses'],
  ['a name', 'PROXY TCP4 localhost 192.0.2.1 1 2', 'without addresses'],
  ['a zone', 'PROXY TCP6 fe80::1%eth0 ::1 1 2', 'without addresses'],
  ['two spaces', 'PROXY TCP4  192.0.2.7 192.0.2.1 1 2', 'without addresses'],
  ['a field too few', 'PROXY TCP4 192.0.2.7 192.0.2.1 12', 'without addresses'],
  ['a field too many', 'PROXY TCP4 192.0.2.7 192.0.2.1 1 2 3', 'without addresses'],
  ['a leading zero', 'PROXY TCP4 192.0.2.7 192.0.2.1 01 2', 'without addresses'],
  ['a port that is too high', 'PROXY TCP4 192.0.2.7 192.0.2.1 65536 2', 'a port above 65535'],
  ['a line end of one byte', 'PROXY TCP4 192.0.2.7 192.0.2.1 1 2\n', 'a line end within the line'],
  ['a carriage return within it', 'PROXY UNKNOWN \rabc', 'a line end within the line'],
  ['no end', `PROXY UNKNOWN ${'x'.repeat(100)}`, 'more than 107 bytes'],
])('version 1 is refused with %s', (_title, text, message) => {
  // Of a line that is wrong before its end no more is read.
  const faults = Array.from({ length: text.length + 3 }, (_none, n) => {
    try {
      readHeader(line(text).subarray(0, n))
      return undefined
    } catch (error) {
      return error as ProxyHeaderError
    }
  })
  expect(faults.find((fault) => fault)).toMatchObject({
    fault: 'malformed',
    message: expect.stringContaining(message),
  })
})

test.each([
  ['version 1 behind the signature of 2', blockHeader({ ...TCP4, version: 1 }), 'version 1 behind'],
  ['an unknown command', blockHeader({ ...TCP4, command: 2 }), 'the command 2'],
  ['an unknown family', blockHeader({ ...TCP4, family: 0x41 }), 'family and transport 41'],
  ['an unknown transport', blockHeader({ ...TCP4, family: 0x13 }), 'family and transport 13'],
  ['too few bytes of addresses', blockHeader({ ...TCP4, family: FAMILIES.tcp6 }), '12 bytes where 36'],
  [
    'a field that is too long',
    blockHeader({ ...TCP4, fields: [Buffer.from([4, 0, 2, 0])] }),
    'longer than the header',
  ],
  ['half a field', blockHeader({ ...TCP4, fields: [Buffer.from([4, 0])] }), 'longer than the header'],
  ['a short checksum', blockHeader({ ...TCP4, fields: [field(3, 'abc')] }), 'a checksum of 3 bytes'],
  ['a wrong checksum', blockHeader({ ...TCP4, fields: [field(3, 'abcd')] }), 'a checksum of another header'],
])('version 2 is refused with %s', (_title, header, message) => {
  const error = errorOf(header)
  expect([error.fault, error.message]).toEqual(['malformed', expect.stringContaining(message)])
})

test('a length that is too great is refused before its bytes have come', () => {
  const header = blockHeader({ ...TCP4, fields: [field(0xe0, 'x'.repeat(MAX_BLOCK - 14))] })
  expect(errorOf(header.subarray(0, 16)).message).toContain(`a length of ${MAX_BLOCK + 1} bytes`)
})

test('a checksum notices each changed bit of what it is about', () => {
  const header = withChecksum({ ...TCP4, fields: [field(0x05, 'id')] })
  for (let at = 16; at < header.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const changed = Buffer.from(header)
      changed[at]! ^= 1 << bit
      // Without its type and length there is no checksum to look at.
      const isChecksum = at >= header.length - 7 && at < header.length - 4
      if (!isChecksum) expect(() => readHeader(changed), `bit ${bit} of byte ${at}`).toThrow(ProxyHeaderError)
    }
  }
})

/** RFC 3720 B.4. */
test.each([
  [Buffer.alloc(32), 0x8a9136aa],
  [Buffer.alloc(32, 0xff), 0x62a8ab43],
  [Buffer.from(Array.from({ length: 32 }, (_none, i) => i)), 0x46dd794e],
  [Buffer.from('123456789'), 0xe3069283],
])('CRC-32C of %o', (bytes, sum) => {
  expect(crc32c(bytes)).toBe(sum)
})

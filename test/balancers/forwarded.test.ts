/** X-Forwarded-For, from right to left. */
import { expect, test } from 'vitest'
import { forwardedFor } from '../../src/balancers/forwarded.ts'

const TRUSTED = ['192.0.2.1', '198.51.100.0/24', '2001:db8:1::/48']

test.each<[string, string, string | undefined, string]>([
  ['no header', '192.0.2.1', undefined, '192.0.2.1'],
  ['one client', '192.0.2.1', '203.0.113.9', '203.0.113.9'],
  ['what the client itself sent is not believed', '192.0.2.1', '10.9.9.9, 203.0.113.9', '203.0.113.9'],
  [
    'a chain of trusted proxies',
    '192.0.2.1',
    '10.9.9.9,203.0.113.9 , 198.51.100.7,2001:db8:1::5',
    '203.0.113.9',
  ],
  ['only trusted ones', '192.0.2.1', '198.51.100.7, 198.51.100.8', '198.51.100.7'],
  ['a stranger', '203.0.113.1', '10.9.9.9', '203.0.113.1'],
  ['a stranger behind a trusted one', '192.0.2.1', '10.9.9.9, 203.0.113.1', '203.0.113.1'],
  ['IPv6 in another form', '192.0.2.1', '2001:DB8:0::9', '2001:db8::9'],
  ['IPv6 in brackets with a port', '192.0.2.1', '[2001:db8::9]:1234', '2001:db8::9'],
  ['IPv4 with a port', '192.0.2.1', '203.0.113.9:1234', '203.0.113.9'],
  ['IPv4 as IPv6', '192.0.2.1', '::ffff:203.0.113.9', '203.0.113.9'],
  ['a trusted one as IPv6', '192.0.2.1', '203.0.113.9, ::ffff:198.51.100.7', '203.0.113.9'],
  ['no address', '192.0.2.1', '203.0.113.9, unknown', '192.0.2.1'],
  ['nothing', '192.0.2.1', '', '192.0.2.1'],
  ['an empty entry', '192.0.2.1', '203.0.113.9,', '192.0.2.1'],
  ['a name', '192.0.2.1', 'localhost', '192.0.2.1'],
  ['a zone', '192.0.2.1', 'fe80::1%eth0', '192.0.2.1'],
  ['no address behind a trusted one', '192.0.2.1', '203.0.113.9, _hidden, 198.51.100.7', '198.51.100.7'],
  ['too many proxies', '192.0.2.1', `203.0.113.9${', 198.51.100.7'.repeat(40)}`, '198.51.100.7'],
])('%s', (_title, connection, header, client) => {
  expect(forwardedFor(connection, header, TRUSTED)).toBe(client)
})

test('without networks nobody is believed', () => {
  expect(forwardedFor('192.0.2.1', '203.0.113.9', [])).toBe('192.0.2.1')
})

import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { forwardRuleError, isConnectAllowed, isForwardAllowed } from '../../src/model/forward-rules.ts'
import { processorTime } from '../processor-time.ts'

describe('a rule', () => {
  test.each([
    'db1.example.com:5432',
    '*.example.com:443',
    '*:22',
    '*:*',
    '10.0.0.0/8:*',
    '192.0.2.1:80',
    '[::1]:1-65535',
    '[2001:db8::/32]:8000-8999',
    'db-*_a.internal.:1',
  ])('%s can be read', (rule) => {
    expect(forwardRuleError(rule)).toBeUndefined()
  })

  test.each([
    '',
    'host',
    ':22',
    'host:',
    'host:0',
    'host:65536',
    'host:9-8',
    'host:1-',
    'host:1,2',
    'host:**',
    '10.0.0.0/33:1',
    '[2001:db8::/129]:1',
    '2001:db8::1:22',
    '[10.0.0.1]:22',
    '[::1:22',
    'a b:22',
    'a\0:22',
    '127.1:22',
    '0x7f000001:22',
    'x:22\n',
    'é:22',
    `${'a'.repeat(256)}:22`,
  ])('%j cannot, and allows nothing', (rule) => {
    expect(forwardRuleError(rule)).toMatch('HOST:PORT')
    expect(isForwardAllowed([rule], 'host', 22)).toBe(false)
  })
})

describe('is allowed', () => {
  test.each([
    [['db1:5432'], 'db1', 5432],
    [['db1:5432'], 'DB1.', 5432],
    [['*.example.com:443'], 'a.b.example.com', 443],
    [['d*b*1:1'], 'dxxbyy1', 1],
    [['10.0.0.0/8:*'], '10.255.0.1', 1],
    [['127.0.0.0/8:*'], '::ffff:127.0.0.1', 1],
    [['[2001:db8::/32]:8000-8999'], '2001:DB8::5', 8000],
    [['other:1', '*:22'], '192.0.2.1', 22],
    [['*:*'], '', 0],
  ])('by %j: %s port %d', (rules, host, port) => {
    expect(isForwardAllowed(rules, host, port)).toBe(true)
  })

  test.each([
    [[], 'db1', 5432],
    [['db1:5432'], 'db1', 5433],
    [['db1:5432'], 'db1.evil.com', 5432],
    [['*.example.com:443'], 'example.com', 443],
    [['*.example.com:443'], 'example.com.evil.com', 443],
    // the target resolves a name that is in the network
    [['10.0.0.0/8:*'], 'inside.example.com', 1],
    [['10.0.0.0/8:*'], '11.0.0.1', 1],
    [['10.0.0.0/8:*'], '::1', 1],
    // a pattern for names does not match addresses, in any notation
    [['1*:22'], '192.0.2.1', 22],
    [['*1:22'], '127.1', 22],
    [['*1:22'], '0x7f.1', 22],
    [['*1:22'], '2130706433', 22],
    [['*1:22'], '::1', 22],
    [['a*:1-65535'], '', 5],
    [['localhost:1-65535'], 'localhost', 0],
  ])('not by %j: %s port %d', (rules, host, port) => {
    expect(isForwardAllowed(rules, host, port)).toBe(false)
  })

  test('as a pattern says, in time', () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[ab*]{1,12}$/), fc.stringMatching(/^[abx]{1,12}$/), (pattern, name) => {
        const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(name)
        expect(isForwardAllowed([`${pattern}:1`], name, 1)).toBe(expected)
      }),
    )
    const started = processorTime()
    isForwardAllowed([`${'*a'.repeat(120)}b:1`], 'a'.repeat(255), 1)
    expect(processorTime() - started).toBeLessThan(100)
  })
})

describe("a cloud's metadata service", () => {
  const WAYS = [
    '169.254.169.254',
    '169.254.170.2',
    '169.254.169.254.',
    '2852039166',
    '0xa9fea9fe',
    '0XA9.254.0251.0376',
    '169.254.43518',
    '0251.0376.0251.0376',
    '::ffff:169.254.169.254',
    '::FFFF:a9fe:a9fe',
    '0:0:0:0:0:ffff:a9fe:a9fe',
    '::169.254.169.254',
    '64:ff9b::a9fe:a9fe',
    'fd00:ec2::254',
    'FE80::A9FE:A9FE%eth0',
    '100.100.100.200',
    'Metadata.Google.Internal.',
    'metadata',
    'metadata.google.internal..',
    'METADATA.GOOG',
    'instance-data',
    'instance-data.eu-west-1.compute.internal',
    'metadata.azure.internal',
    'metadata.azure.com',
    'metadata.tencentyun.com',
    'metadata.platformequinix.com',
    'rancher-metadata',
    '[fd00:ec2::254]',
    '[::ffff:169.254.169.254',
    '169.254.169.254%eth0',
    '0xa9fea9fe%1',
    // parts that are too large, and numbers that overflow
    '425.510.425.510',
    '0x1a9fea9fe',
    '11441973758',
    '169.254.0124776',
    '0xa9.0xfea9fe',
    // IPv6 addresses of the services themselves
    'fd00:ec2::23',
    'fd00:0ec2:0:0:0:0:0:254',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    'fd00:42::42',
    'fe80::1',
    'febf::1%2',
    // IPv4 within IPv6: translated, compatible, NAT64 with each length of a prefix, 6to4, Teredo, ISATAP
    '::ffff:0:a9fe:a9fe',
    '::ffff:0:169.254.169.254',
    '64:ff9b::169.254.1.1',
    '64:ff9b:1::a9fe:a9fe',
    '64:ff9b:1:a9fe:a9:fe00::',
    '64:ff9b:1:a9:fe:a9fe::',
    '64:ff9b:1:0:a9:fea9:fe00:0',
    '2002:a9fe:a9fe::1',
    '2002:6464:64c8::',
    '2001:0:a9fe:a9fe::1',
    '2001::ffff:ffff:ffff:5601:5601',
    '2001:db8::5efe:169.254.169.254',
    '2001:db8::200:5efe:a9fe:1',
    // a prefix of the network's own
    '2001:db8:64::a9fe:a9fe',
    '2001:db8:a9fe:a9fe::',
    '2001:db8:12a9:fea9:fe::',
    '2001:db8::100.100.100.200',
    '64:ff9b::168.63.129.16',
    '168.63.129.16',
    '192.0.0.192',
    '100.96.0.96',
    // names that contain their address
    '169.254.169.254.nip.io',
    'www-169-254-169-254.sslip.io',
    'a9fea9fe.nip.io',
    'x.0xa9fea9fe.example.com',
    'fd00-ec2--254.sslip.io',
    '--ffff-a9fe-a9fe.sslip.io',
    'www-fd00-ec2--254-x.sslip.io',
    'fd00-ec2-0-0-0-0-0-254.sslip.io',
    'x.2002-a9fe-a9fe--.example.com',
  ]

  test.each(WAYS)('as %s is reached by no connection without a rule, nor by a rule for anything', (host) => {
    expect(isConnectAllowed([], host, 80)).toBe(false)
    expect(isConnectAllowed(['*:*', '*:80'], host, 80)).toBe(false)
  })

  test.each([
    ['0.0.0.0/0:80', '169.254.169.254'],
    ['100.64.0.0/10:80', '100.100.100.200'],
    ['[::/0]:80', 'fd00:ec2::254'],
    ['[fd00::/8]:80', 'fd00:ec2::254'],
    ['[64:ff9b::/96]:80', '64:ff9b::a9fe:a9fe'],
    ['*.internal:80', 'metadata.google.internal'],
    ['m*:80', 'metadata'],
    ['169.254.169.254:80', '64:ff9b::a9fe:a9fe'],
    ['169.254.169.254:80', '169-254-169-254.nip.io'],
  ])('is not reached by a rule that has it among others: %s', (rule, host) => {
    expect(isConnectAllowed([rule], host, 80)).toBe(false)
  })

  test('is reached by a rule that says so', () => {
    expect(isConnectAllowed(['[fe80::/10]:80'], 'fe80::1', 80)).toBe(true)
    expect(isConnectAllowed(['[64:ff9b::a9fe:a9fe]:80'], '64:ff9b::a9fe:a9fe', 80)).toBe(true)
    expect(isConnectAllowed(['169-254-169-254.nip.io:80'], '169-254-169-254.nip.io', 80)).toBe(true)
    expect(isConnectAllowed(['169.254.169.254:80'], '169.254.169.254', 80)).toBe(true)
    expect(isConnectAllowed(['169.254.0.0/16:80'], '::ffff:a9fe:a9fe', 80)).toBe(true)
    expect(isConnectAllowed(['metadata.google.internal:80'], 'metadata.google.internal', 80)).toBe(true)
    expect(isConnectAllowed(['169.254.169.254:80'], '169.254.169.254', 81)).toBe(false)
  })

  test.each([
    '169.253.169.254',
    '2852039',
    '127.0.0.1',
    '::1',
    'localhost',
    'fe7f::1',
    'metadata.example.com',
    '',
    '1.2.3.4.5',
    '1.169.254.1',
    '10.169.254.169',
    '2001:db8::a9fe',
    '2001:db8::169.254.1.1',
    '2a00:1450:4001:81b::200e',
    '64:ff9b::10.0.0.1',
    '2002:a00:1::1',
    'fd00::1',
    'metadata-store.example.com',
    'metadata.example.internal.com',
    'host-10-169-254-16.example.com',
    'deadbeef.example.com',
    'db169.254.169.254x',
    '0x',
    '08.1',
  ])('%j is another place', (host) => {
    expect(isConnectAllowed([], host, 80)).toBe(true)
    expect(isConnectAllowed(['*:*'], host, 80)).toBe(true)
  })
})

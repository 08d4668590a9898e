import { expect, it } from 'vitest'
import { isFrom, networkError } from '../../src/model/networks.ts'

it.each<[string, string[], boolean]>([
  ['192.0.2.1', [], true],
  ['192.0.2.1', ['192.0.2.1'], true],
  ['192.0.2.1', ['192.0.2.2'], false],
  ['10.1.2.3', ['192.0.2.1', '10.0.0.0/8'], true],
  ['11.1.2.3', ['10.0.0.0/8'], false],
  ['::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['2001:db8::1', ['2001:db8::/32'], true],
  ['2001:db9::1', ['2001:db8::/32'], false],
  ['fe80::1%eth0', ['fe80::/10'], true],
  ['192.0.2.1', ['nonsense'], false],
  ['192.0.2.1', ['nonsense', '0.0.0.0/0'], true],
  ['', ['0.0.0.0/0', '::/0'], false],
])('%s from %j: %s', (address, networks, expected) => {
  expect(isFrom(address, networks)).toBe(expected)
})

it.each(['192.0.2.1', '10.0.0.0/8', '::1', '::/0'])('%s is a network', (text) => {
  expect(networkError(text)).toBeUndefined()
})

it.each(['', '10.0.0.0/33', '::/129', '10.0.0', 'a', '10.0.0.0/', '10.0.0.0/-1', ' 10.0.0.1'])(
  '%j is none',
  (text) => {
    expect(networkError(text)).toBeTypeOf('string')
  },
)

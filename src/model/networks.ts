/** Networks and addresses that a user or a key may come from: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`. */
import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** The address as IPv4 when it is an IPv4-mapped IPv6 address, which is what a dual-stack socket shows. */
export function plainAddress(address: string): string {
  const [, mapped] = MAPPED.exec(address) ?? []
  return mapped !== undefined && isIPv4(mapped) ? mapped : address
}

/** The one way to write an address of those that there are, for comparing: `2001:DB8:0::1` is `2001:db8::1`. */
export function sameAddress(address: string): string {
  const plain = plainAddress(address)
  const family = isIPv6(plain) && !plain.includes('%') ? 'ipv6' : undefined
  return family ? plainAddress(new SocketAddress({ address: plain, family }).address) : plain
}

/** What one host commands, to count by: its IPv4 address, or the /64 of its IPv6 address. */
export function networkOf(source: string): string {
  const address = plainAddress(source)
  return isIPv6(address) ? beginOf(address, 4) : address
}

/** What one customer of a provider may command: the /24 of an IPv4 address, or the /48 of an IPv6 address. */
export function neighbourhoodOf(source: string): string {
  const address = plainAddress(source)
  if (isIPv6(address)) return beginOf(address, 3)
  return isIPv4(address) ? address.slice(0, address.lastIndexOf('.')) : address
}

/** The first `count` of the eight groups of an IPv6 address. */
function beginOf(address: string, count: number): string {
  const [head = '', tail] = address.split('%')[0]!.split('::')
  const groups = head === '' ? [] : head.split(':')
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':')
    while (groups.length + after.length < 8) groups.push('0')
    groups.push(...after)
  }
  return groups
    .slice(0, count)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')
}

/** What is wrong with a network; undefined when it is a good one. */
export function networkError(text: string): string | undefined {
  return parse(text)
    ? undefined
    : 'expected an address or a network such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32'
}

/** Whether the address lies in one of the networks; no networks: yes. One that cannot be read holds nobody. */
export function isFrom(address: string, networks: readonly string[]): boolean {
  if (networks.length === 0) return true
  const plain = plainAddress(address).split('%')[0] ?? ''
  const family = isIP(plain)
  if (family === 0) return false
  const list = new BlockList()
  for (const text of networks) {
    const network = parse(text)
    if (network) list.addSubnet(network.address, network.prefix, network.family)
  }
  return list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}

/** Whether every address of the network, or the address, lies in one of the networks. */
export function isWithin(network: string, networks: readonly string[]): boolean {
  const inner = parse(network)
  if (!inner) return false
  return networks.some((text) => {
    const outer = parse(text)
    return outer?.family === inner.family && outer.prefix <= inner.prefix && isFrom(inner.address, [text])
  })
}

function parse(text: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [, address = '', length] = /^([0-9A-Fa-f.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  if (family === 0) return undefined
  const bits = family === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  return prefix <= bits ? { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' } : undefined
}

/**
 * The networks and addresses that a user or a key may come from: `10.0.0.0/8`, `2001:db8::/32`, `192.0.2.1`.
 */
import { BlockList, isIP, isIPv4, isIPv6, SocketAddress } from 'node:net'

const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i

/** Returns an IPv4-mapped IPv6 address, as a dual-stack socket reports it, as IPv4; any other unchanged. */
export function plainAddress(address: string): string {
  const [, mapped] = MAPPED.exec(address) ?? []
  return mapped !== undefined && isIPv4(mapped) ? mapped : address
}

/** Returns one form per address, for comparing: `2001:DB8:0::1` becomes `2001:db8::1`. */
export function sameAddress(address: string): string {
  const plain = plainAddress(address)
  const family = isIPv6(plain) && !plain.includes('%') ? 'ipv6' : undefined
  return family ? plainAddress(new SocketAddress({ address: plain, family }).address) : plain
}

/**
 * Returns the network that one host controls, for counting: its IPv4 address, or the /64 of its IPv6 address.
 */
export function networkOf(source: string): string {
  const address = plainAddress(source)
  return isIPv6(address) ? beginOf(address, 4) : address
}

/**
 * Returns the network that one customer of a provider may control: the /24 of an IPv4 address, or the /48 of
 * an IPv6 one.
 */
export function neighbourhoodOf(source: string): string {
  const address = plainAddress(source)
  if (isIPv6(address)) return beginOf(address, 3)
  return isIPv4(address) ? address.slice(0, address.lastIndexOf('.')) : address
}

/** Returns the first `count` of the eight groups of an IPv6 address. */
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

/** Returns the error in a network, or undefined if it is valid. */
export function networkError(text: string): string | undefined {
  return parse(text)
    ? undefined
    : 'expected an address or a network such as 192.0.2.1, 10.0.0.0/8 or 2001:db8::/32'
}

/**
 * Whether the address is in one of the networks; always true without networks. An invalid network holds no
 * address.
 */
export function isFrom(address: string, networks: readonly string[]): boolean {
  return fromAny(networks)(address)
}

/** As `isFrom`, for many addresses. */
export function fromAny(networks: readonly string[]): (address: string) => boolean {
  if (networks.length === 0) return () => true
  const list = new BlockList()
  for (const text of networks) {
    const network = parse(text)
    if (network) list.addSubnet(network.address, network.prefix, network.family)
  }
  return (address) => {
    const plain = plainAddress(address).split('%')[0] ?? ''
    const family = isIP(plain)
    return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

/** Whether the network or address lies entirely in one of the networks. */
export function isWithin(network: string, networks: readonly string[]): boolean {
  const inner = parse(network)
  if (!inner) return false
  return networks.some((text) => {
    const outer = parse(text)
    return outer?.family === inner.family && outer.prefix <= inner.prefix && isFrom(inner.address, [text])
  })
}

/**
 * Whether the network is wider than any that belongs to one organization: an IPv4 /8 or IPv6's unique local
 * addresses, a /7.
 */
export function isTooWide(network: string): boolean {
  const { address = '', prefix = 0, family } = parse(network) ?? {}
  if (family === 'ipv4') return prefix < 8
  // IPv4 addresses match networks of their mapped form too.
  return family === 'ipv6' && prefix < (isIPv4(sameAddress(address)) ? 104 : 7)
}

function parse(text: string): { address: string; prefix: number; family: 'ipv4' | 'ipv6' } | undefined {
  const [, address = '', length] = /^([0-9A-Fa-f.:]+)(?:\/([0-9]{1,3}))?$/.exec(text) ?? []
  const family = isIP(address)
  if (family === 0) return undefined
  const bits = family === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  return prefix <= bits ? { address, prefix, family: family === 4 ? 'ipv4' : 'ipv6' } : undefined
}

/**
 * A connection policy's rules for forwarded connections: `HOST:PORT`. HOST is a name, in which `*` matches
 * any characters (`*` alone matches any host), or an address or network (`10.0.0.0/8`, `[2001:db8::/32]`).
 * PORT is a number, a range `a-b` or `*`. The bastion resolves no names, the target does: a rule about
 * addresses matches connections to literal addresses only.
 */
import { BlockList, isIP } from 'node:net'
import { isGuardedAddress, isMetadataService, NUMERIC } from './metadata-services.ts'

const MAX_PORT = 65_535
const MAX_NAME = 255
const NAME = /^[a-z0-9._*-]+$/
const MAPPED = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/

type Host =
  | { kind: 'any' }
  | { kind: 'name'; pattern: string }
  | { kind: 'network'; address: string; prefix: number; family: 'ipv4' | 'ipv6' }

interface Rule {
  host: Host
  /** Absent if any port matches. */
  ports: { first: number; last: number } | undefined
}

/** Returns the error in a rule, or undefined if it is valid. */
export function forwardRuleError(text: string): string | undefined {
  return parse(text)
    ? undefined
    : 'expected HOST:PORT such as db1.example.com:5432, *.example.com:443, 10.0.0.0/8:*, [2001:db8::/32]:8000-8999 or *:22'
}

/**
 * Whether a rule allows this host and port, as requested. Port 0 (the target chooses) and the empty host (all
 * addresses) are allowed by `*` only. An invalid rule allows nothing.
 */
export function isForwardAllowed(rules: readonly string[], host: string, port: number): boolean {
  const name = host.toLowerCase().replace(/\.$/, '')
  return rules.some((text) => {
    const rule = parse(text)
    return rule !== undefined && holdsPort(rule.ports, port) && holdsHost(rule.host, name)
  })
}

/**
 * Whether the target may be requested to connect to the host. Without rules: to any host except a metadata
 * service, which needs a rule that names it; `*`, patterns and networks that merely contain it do not count.
 * The addresses of a name are not known here.
 */
export function isConnectAllowed(rules: readonly string[], host: string, port: number): boolean {
  if (!isMetadataService(host)) return rules.length === 0 || isForwardAllowed(rules, host, port)
  return isForwardAllowed(rules.filter(namesOne), host, port)
}

/** Whether a rule names one host, or a network within the guarded ones. */
function namesOne(text: string): boolean {
  const host = parse(text)?.host
  if (host?.kind === 'name') return !host.pattern.includes('*')
  return host?.kind === 'network' && isGuardedAddress(host.address)
}

function holdsPort(ports: Rule['ports'], port: number): boolean {
  return ports === undefined || (ports.first <= port && port <= ports.last)
}

function holdsHost(rule: Host, host: string): boolean {
  if (rule.kind === 'any') return true
  const [, plain = host] = MAPPED.exec(host) ?? []
  const family = isIP(plain)
  if (rule.kind === 'name') {
    return family === 0 && host !== '' && !NUMERIC.test(host) && matches(rule.pattern, host)
  }
  if (family === 0) return false
  const network = new BlockList()
  network.addSubnet(rule.address, rule.prefix, rule.family)
  return network.check(plain, family === 4 ? 'ipv4' : 'ipv6')
}

/**
 * Matches `*` as any run of characters. Backtracks to the last `*` only, so it needs at most pattern × text
 * steps.
 */
function matches(pattern: string, text: string): boolean {
  let at = 0
  let star = -1
  let resume = 0
  for (let position = 0; position < text.length; ) {
    if (pattern[at] === '*') {
      star = at++
      resume = position
    } else if (pattern[at] === text[position]) {
      at++
      position++
    } else if (star >= 0) {
      at = star + 1
      position = ++resume
    } else {
      return false
    }
  }
  while (pattern[at] === '*') at++
  return at === pattern.length
}

function parse(text: string): Rule | undefined {
  const [, bracketed, plain, portText = ''] = /^(?:\[([^\]]*)\]|([^[\]:]*)):([0-9*-]+)$/.exec(text) ?? []
  const ports = portsOf(portText)
  const host = bracketed !== undefined ? networkOf(bracketed, 6) : hostOf(plain ?? '')
  return ports && host ? { host, ports: ports === '*' ? undefined : ports } : undefined
}

function portsOf(text: string): Rule['ports'] | '*' {
  if (text === '*') return '*'
  const [, first, last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  const ports = { first: Number(first), last: Number(last) }
  return 1 <= ports.first && ports.first <= ports.last && ports.last <= MAX_PORT ? ports : undefined
}

function hostOf(text: string): Host | undefined {
  if (text === '*') return { kind: 'any' }
  const network = networkOf(text, 4)
  if (network) return network
  const pattern = text.toLowerCase().replace(/\.$/, '')
  if (pattern.length > MAX_NAME || !NAME.test(pattern) || NUMERIC.test(pattern)) return undefined
  return { kind: 'name', pattern }
}

function networkOf(text: string, version: 4 | 6): Host | undefined {
  const [, address = '', length] = /^([0-9A-Fa-f.:]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  if (isIP(address) !== version) return undefined
  const bits = version === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  if (prefix > bits) return undefined
  return { kind: 'network', address, prefix, family: version === 4 ? 'ipv4' : 'ipv6' }
}

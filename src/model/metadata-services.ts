/**
 * The services by which clouds hand the machine's own credentials to any client: their addresses, in every
 * form that a resolver accepts, and their known names. Nothing is resolved here; in doubt a host counts as
 * one.
 */
import { BlockList, isIPv4, isIPv6 } from 'node:net'

/** Addresses that have no other use; also searched within any IPv6 address that may stand for an IPv4 one. */
const KNOWN = [
  // AWS, Azure, Google, Oracle, OpenStack and nearly all others
  '169.254.169.254',
  // AWS: containers, pods; Tencent; Scaleway
  '169.254.170.2',
  '169.254.170.23',
  '169.254.0.23',
  '169.254.42.42',
  // Alibaba, Volcengine, Azure's fabric, Oracle Classic
  '100.100.100.200',
  '100.96.0.96',
  '168.63.129.16',
  '192.0.0.192',
]

const GUARDED = new BlockList()
const EXACT = new BlockList()
for (const address of KNOWN) {
  GUARDED.addAddress(address, 'ipv4')
  EXACT.addAddress(address, 'ipv4')
}
// Link-local: no forwarding needs to reach these.
GUARDED.addSubnet('169.254.0.0', 16, 'ipv4')
GUARDED.addSubnet('fe80::', 10, 'ipv6')
// AWS, Google, Oracle, Scaleway
GUARDED.addSubnet('fd00:ec2::', 32, 'ipv6')
GUARDED.addSubnet('fd20:ce::', 32, 'ipv6')
GUARDED.addSubnet('fd00:c1::', 32, 'ipv6')
GUARDED.addSubnet('fd00:42::42', 128, 'ipv6')

/** First labels of such services, alone or in a cloud's own domain. */
const LABELS = new Set(['metadata', 'instance-data', 'rancher-metadata'])
const DOMAINS = [
  'internal',
  'local',
  'localdomain',
  'goog',
  'azure.com',
  'azure.net',
  'windows.net',
  'amazonaws.com',
]
const NAMES = new Set([
  'metadata.goog',
  'metadata.tencentyun.com',
  'metadata.platformequinix.com',
  'metadata.packet.net',
  'metadata.oraclecloud.com',
  'metadata.exoscale.com',
  'api.metadata.cloud.ibm.com',
  'api.service.softlayer.com',
])

/** Pieces between the colons of an IPv6 address: `1:2:3:4:5:6:7::` has nine. */
const MOST_GROUPS = 9

/**
 * An IPv4 address as inet_aton(3) reads it: `127.1`, `0x7f000001`, `017700000001`. It must not count as a
 * name.
 */
export const NUMERIC = /^(?:0x[0-9a-f]*|\d+)(?:\.(?:0x[0-9a-f]*|\d+)){0,3}$/

/** Whether a host, as a client writes it, is a metadata service. */
export function isMetadataService(host: string): boolean {
  const name = host
    .toLowerCase()
    .replace(/^\[(.*?)\]?$/, '$1')
    .replace(/%.*$/, '')
    .replace(/\.+$/, '')
  if (isIPv6(name)) return isGuardedIPv6(name)
  if (NUMERIC.test(name)) return numericForms(name).some((address) => isGuardedAddress(address))
  return isKnownName(name) || embeddedIn(name).some((address) => isGuardedAddress(address))
}

/**
 * Whether an IPv4 or IPv6 address in ordinary form is guarded, or the address of a network within the guarded
 * ones.
 */
export function isGuardedAddress(address: string): boolean {
  return isIPv4(address) ? GUARDED.check(address, 'ipv4') : isIPv6(address) && isGuardedIPv6(address)
}

/**
 * Returns the addresses that resolvers read in a number: most reject parts that are too large, some cut them.
 */
function numericForms(text: string): string[] {
  const parts = text.split('.').map(numberOf)
  const last = parts.pop() ?? 0n
  const bytes = parts.map((part) => part & 0xffn)
  const place = (index: number) => BigInt(8 * (3 - index))
  const whole = parts.reduce((sum, part, index) => sum + (part << place(index)), last)
  const cut = bytes.reduce(
    (sum, part, index) => sum | (part << place(index)),
    last & ((1n << (8n * BigInt(4 - parts.length))) - 1n),
  )
  return [whole, cut].map((value) => dotted(Number(BigInt.asUintN(32, value))))
}

/** Decimal, octal with a leading zero, or hexadecimal. */
function numberOf(part: string): bigint {
  if (part === '0x') return 0n
  return BigInt(/^0[0-7]+$/.test(part) ? `0o${part}` : part)
}

function dotted(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 0xff).join('.')
}

function isGuardedIPv6(address: string): boolean {
  return GUARDED.check(address, 'ipv6') || isTranslated(bytesOf(address))
}

/**
 * Whether an IPv6 address stands for a guarded IPv4 one. Behind the well-known prefixes any guarded address
 * counts; behind others, which networks choose (RFC 6052 2.2, 6rd), only one that has no other use.
 */
function isTranslated(bytes: Uint8Array): boolean {
  const at = (...indexes: number[]) => indexes.map((index) => bytes[index]).join('.')
  const begins = (...prefix: number[]) => prefix.every((byte, index) => bytes[index] === byte)
  const isZero = (from: number, to: number) => bytes.subarray(from, to).every((byte) => byte === 0)
  const last = at(12, 13, 14, 15)
  /** RFC 6052 2.2: prefixes of 32, 40, 48, 56, 64 and 96 bits; bits 64 to 71 are zero. */
  const translated = [
    at(4, 5, 6, 7),
    at(5, 6, 7, 9),
    at(6, 7, 9, 10),
    at(7, 9, 10, 11),
    at(9, 10, 11, 12),
    last,
  ]
  const found: string[] = []
  // ::a.b.c.d, ::ffff:a.b.c.d (RFC 4291 2.5.5), ::ffff:0:a.b.c.d (RFC 2765 2.1)
  if (isZero(0, 8)) found.push(last)
  // 64:ff9b::/96 (RFC 6052), 64:ff9b:1::/48 (RFC 8215)
  if (begins(0, 0x64, 0xff, 0x9b)) found.push(...translated)
  // 2002:a.b.c.d::/48 (RFC 3056)
  if (begins(0x20, 0x02)) found.push(at(2, 3, 4, 5))
  // 2001:0:SERVER:…:CLIENT, the client's address with all bits inverted (RFC 4380 4)
  if (begins(0x20, 0x01, 0, 0)) {
    found.push(
      at(4, 5, 6, 7),
      bytes
        .subarray(12)
        .map((byte) => byte ^ 0xff)
        .join('.'),
    )
  }
  // …:0:5efe:a.b.c.d, …:200:5efe:a.b.c.d (RFC 5214 6.1)
  if (((bytes[8] ?? 0) & 0xfd) === 0 && bytes[9] === 0 && bytes[10] === 0x5e && bytes[11] === 0xfe)
    found.push(last)
  const anywhere = [...translated, at(2, 3, 4, 5)]
  return (
    found.some((address) => GUARDED.check(address, 'ipv4')) ||
    anywhere.some((address) => EXACT.check(address, 'ipv4'))
  )
}

/** Returns the 16 bytes of a valid IPv6 address without a zone. */
function bytesOf(address: string): Uint8Array {
  const [, head = address, quad] = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(address) ?? []
  const tail = quad?.split('.').map(Number) ?? []
  const groups = (text: string) =>
    text
      .split(':')
      .filter((group) => group !== '')
      .flatMap((group) => {
        const value = Number.parseInt(group, 16)
        return [value >> 8, value & 0xff]
      })
  const [before = '', after] = head.split('::')
  const front = groups(before)
  const back = [...groups(after ?? ''), ...tail]
  return Uint8Array.from([...front, ...new Array<number>(16 - front.length - back.length).fill(0), ...back])
}

function isKnownName(name: string): boolean {
  const [label = '', ...domain] = name.split('.')
  if (NAMES.has(name)) return true
  const behind = domain.join('.')
  return (
    LABELS.has(label) &&
    (behind === '' || DOMAINS.some((known) => behind === known || behind.endsWith(`.${known}`)))
  )
}

/** Returns the addresses embedded in a name, as at nip.io and sslip.io: `169-254-169-254.example.com`. */
function embeddedIn(name: string): string[] {
  const quads = [...name.matchAll(/(?<![0-9a-z])(\d{1,3})([.-])(\d{1,3})\2(\d{1,3})\2(\d{1,3})(?![0-9a-z])/g)]
  const hexes = [...name.matchAll(/(?<![0-9a-z])(?:0x)?([0-9a-f]{8})(?![0-9a-z])/g)]
  return [
    ...quads.map(([, a, , b, c, d]) => [a, b, c, d].map(Number).join('.')),
    ...hexes.map(([, hex = '']) => dotted(Number.parseInt(hex, 16))),
    ...name.split('.').flatMap(dashedIn),
  ]
}

/**
 * Returns IPv6 addresses written in a label with `-` for `:`: `fd00-ec2--254`, also before or behind other
 * words.
 */
function dashedIn(label: string): string[] {
  const parts = label.split('-')
  return parts.flatMap((_, begin) =>
    Array.from({ length: MOST_GROUPS }, (_, more) => parts.slice(begin, begin + more + 1).join(':')).filter(
      isIPv6,
    ),
  )
}

/** Attributes of a person out of an Access-Accept. */
import { Buffer } from 'node:buffer'
import type { AuthDomainAttributes } from '../../../model/external-auths.ts'
import type { Person } from '../method.ts'
import { ATTRIBUTES, type Attribute, MAX_VALUE, numberOf, RadiusError, valuesOf } from './packet.ts'

const MAX_GROUPS = 256
/** Octets of all values of Class that are kept: they have to fit into one request beside all else. */
const MAX_CLASSES = 2048
/** Names of attributes that a domain may use; others go by number. */
const NAMES: ReadonlyMap<string, number> = new Map([
  ['filter-id', ATTRIBUTES.filterId],
  ['class', ATTRIBUTES.class],
])
/** Service-Types that are a sign-in: Login, Administrative, NAS-Prompt, Authenticate-Only. */
const SERVICES: readonly number[] = [1, 6, 7, 8]

/** Whether a name can be sent: of 1 to 253 octets, without control characters. */
export function isSendable(userName: string): boolean {
  return userName !== '' && Buffer.byteLength(userName) <= MAX_VALUE && !/\p{Cc}/u.test(userName)
}

/**
 * Returns the person. An attribute of the domain is a name (`Filter-Id`, the default for groups, or `Class`), a number,
 * or `vendor:type`; each value of the group's attribute is one group, whole.
 * @throws RadiusError for an accept to another service (RFC 2865 5.6), or an attribute that is none
 */
export function personOf(
  userName: string,
  attributes: readonly Attribute[],
  names: AuthDomainAttributes,
): Person {
  const service = numberOf(attributes, ATTRIBUTES.serviceType)
  if (service !== undefined && !SERVICES.includes(service))
    throw new RadiusError(
      `expected Service-Type Login (1), got ${service}: it lets the person into another service`,
    )
  const texts = (name: string) =>
    found(attributes, name).flatMap((value) => {
      const text = Buffer.from(value).toString('utf8')
      return text === '' || text.includes('\uFFFD') || /\p{Cc}/u.test(text) ? [] : [text]
    })
  const one = (name: string | undefined) => (name === undefined ? undefined : texts(name)[0])
  const displayName = one(names.displayName)
  const email = one(names.email)
  const language = one(names.language)
  return {
    userName,
    ...(displayName !== undefined && { displayName }),
    ...(email !== undefined && { email }),
    ...(language !== undefined && { language }),
    groups: [...new Set(texts(names.group ?? 'Filter-Id'))].slice(0, MAX_GROUPS),
    ...(names.publicKey !== undefined && { publicKeys: texts(names.publicKey) }),
  }
}

/** Returns the values of Class, unchanged (RFC 2865 5.25): as many of the first as there is room for. */
export function classesOf(attributes: readonly Attribute[]): Uint8Array[] {
  return fittingClasses(valuesOf(attributes, ATTRIBUTES.class))
}

export function fittingClasses(values: readonly Uint8Array[]): Uint8Array[] {
  const kept: Uint8Array[] = []
  let octets = 0
  for (const value of values) {
    octets += value.length + 2
    if (octets > MAX_CLASSES || value.length > MAX_VALUE) break
    kept.push(value)
  }
  return kept
}

function found(attributes: readonly Attribute[], name: string): Uint8Array[] {
  const type = NAMES.get(name.toLowerCase()) ?? (/^\d{1,3}$/.test(name) ? Number(name) : undefined)
  if (type !== undefined && type > 0 && type < 256) return valuesOf(attributes, type)
  const [, vendor, own] = /^(\d{1,8}):(\d{1,3})$/.exec(name) ?? []
  if (vendor === undefined || own === undefined)
    throw new RadiusError(`expected an attribute such as Filter-Id, Class, 11 or 9:1, got ${name}`)
  return valuesOf(attributes, ATTRIBUTES.vendorSpecific).flatMap((value) =>
    ofVendor(value, Number(vendor), Number(own)),
  )
}

/** Returns the values of a type within one Vendor-Specific attribute (RFC 2865 5.26), up to the first torn one. */
function ofVendor(value: Uint8Array, vendor: number, type: number): Uint8Array[] {
  const bytes = Buffer.from(value)
  if (bytes.length < 4 || bytes.readUInt32BE(0) !== vendor) return []
  const values: Uint8Array[] = []
  for (let at = 4; at + 2 <= bytes.length; ) {
    const size = bytes[at + 1]!
    if (size < 2 || at + size > bytes.length) return values
    if (bytes[at] === type) values.push(bytes.subarray(at + 2, at + size))
    at += size
  }
  return values
}

/**
 * Names of an event's fields in CEF, LEEF and the Elastic Common Schema. A field without a fitting name there
 * has one of our own. docs/events.md has this table.
 */
import { isIP, isIPv4, isIPv6 } from 'node:net'
import type { EventField } from '../../events/fields.ts'

export interface FieldNames {
  /** Path in the document. */
  ecs: string
  cef: string
  leef: string
}

const FITTING: Partial<Record<EventField, Partial<FieldNames>>> = {
  user: { ecs: 'user.name', cef: 'suser', leef: 'usrName' },
  profile: { ecs: 'user.roles', cef: 'spriv', leef: 'role' },
  client_ip: { ecs: 'source.address', cef: 'shost', leef: 'identHostName' },
  client_port: { ecs: 'source.port', cef: 'spt', leef: 'srcPort' },
  protocol: { ecs: 'network.protocol', cef: 'app' },
  account: { ecs: 'user.target.name', cef: 'duser', leef: 'accountName' },
  domain: { ecs: 'user.target.domain', leef: 'domain' },
  device: { cef: 'dhost', leef: 'resource' },
  service: { cef: 'destinationServiceName' },
  target_host: { ecs: 'destination.address' },
  authorization: { leef: 'policy' },
  result: { cef: 'outcome' },
  reason: { ecs: 'event.reason', cef: 'reason' },
  path: { ecs: 'file.path', cef: 'filePath' },
  size: { ecs: 'file.size', cef: 'fsize' },
  sha256: { ecs: 'file.hash.sha256', cef: 'fileHash' },
  duration: { ecs: 'event.duration' },
  bytes_in: { ecs: 'source.bytes', cef: 'in', leef: 'srcBytes' },
  bytes_out: { ecs: 'destination.bytes', cef: 'out', leef: 'dstBytes' },
  rule: { ecs: 'rule.name' },
  count: { cef: 'cnt' },
}

/** Names of a field that holds an IP address; receivers refuse other values under these. */
const ADDRESSES: Partial<Record<EventField, { ecs: string; ipv4: string; ipv6: string; leef: string }>> = {
  client_ip: { ecs: 'source.ip', ipv4: 'src', ipv6: 'c6a2', leef: 'src' },
  target_host: { ecs: 'destination.ip', ipv4: 'dst', ipv6: 'c6a3', leef: 'dst' },
}

/** `object_type` as `objectType`: receivers allow letters and digits only. */
export const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase())

const capital = (name: string): string => name.charAt(0).toUpperCase() + name.slice(1)

/** Returns the names of a field whose value is no IP address. */
export function namesOf(field: EventField): FieldNames {
  return {
    ecs: `sallyport.${field}`,
    cef: `sallyport${capital(camel(field))}`,
    leef: camel(field),
    ...FITTING[field],
  }
}

/** Returns the name in CEF: an address has that of its family. */
export function cefNameOf(field: EventField, value: string | number): string {
  const address = ADDRESSES[field]
  if (address && isIPv4(String(value))) return address.ipv4
  return address && isIPv6(String(value)) ? address.ipv6 : namesOf(field).cef
}

export function leefNameOf(field: EventField, value: string | number): string {
  const address = ADDRESSES[field]
  return address && isIP(String(value)) ? address.leef : namesOf(field).leef
}

/** Returns the name of the field that holds it once more if it is an IP address. */
export function ecsAddressOf(field: EventField, value: string | number): string | undefined {
  return isIP(String(value)) ? ADDRESSES[field]?.ecs : undefined
}

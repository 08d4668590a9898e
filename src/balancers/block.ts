/**
 * Version 2, in bytes:
 *
 *     0   signature (12)
 *     12  version (4 bits) and command (4): 0 LOCAL, 1 PROXY
 *     13  family (4): 0 none, 1 IPv4, 2 IPv6, 3 Unix; transport (4): 0 none, 1 stream, 2 datagram
 *     14  length of what follows (16)
 *     16  addresses: client, here, client's port, port; then fields: type (8), length (16), value
 */
import { Buffer } from 'node:buffer'
import { sameAddress } from '../model/networks.ts'
import { type Claim, malformed, type Reading } from './claim.ts'
import { crc32c } from './crc32c.ts'

const FIXED = 16
/** Bytes behind the fixed part: the addresses have at most 216, and a field may hold a client's certificate. */
export const MAX_BLOCK = 16 * 1024
const VERSION = 2
const [LOCAL, PROXY] = [0, 1]
/** Bytes of the addresses, by family. */
const LENGTHS: Readonly<Record<number, number>> = { 0: 0, 1: 12, 2: 36, 3: 216 }
const [IPV4, IPV6] = [1, 2]
const MAX_TRANSPORT = 2
const FIELD_CHECKSUM = 0x03

/**
 * Reads a block that begins with the signature.
 * @throws ProxyHeaderError
 */
export function readBlock(bytes: Buffer): Reading {
  if (bytes.length < FIXED) return { missing: FIXED - bytes.length }
  const command = bytes[12]! & 0x0f
  const family = bytes[13]! >> 4
  const length = bytes.readUInt16BE(14)
  if (bytes[12]! >> 4 !== VERSION)
    throw malformed(`version ${bytes[12]! >> 4} behind the signature of ${VERSION}`)
  if (command !== LOCAL && command !== PROXY) throw malformed(`the command ${command}`)
  if (length > MAX_BLOCK) throw malformed(`a length of ${length} bytes, of which ${MAX_BLOCK} are allowed`)
  if (bytes.length < FIXED + length) return { missing: FIXED + length - bytes.length }
  // The balancer's own connection: whatever else it says is to be ignored.
  if (command === LOCAL) return { claim: { client: undefined } }
  const addresses = LENGTHS[family]
  if (addresses === undefined || (bytes[13]! & 0x0f) > MAX_TRANSPORT)
    throw malformed(`the family and transport ${bytes[13]!.toString(16).padStart(2, '0')}`)
  if (length < addresses) throw malformed(`${length} bytes where ${addresses} of addresses are due`)
  // Without a family the rest has no defined form.
  if (family !== 0) checkFields(bytes, FIXED + addresses)
  return { claim: { client: clientOf(bytes, family) } }
}

function clientOf(bytes: Buffer, family: number): Claim['client'] {
  if (family === IPV4) {
    return { address: bytes.subarray(16, 20).join('.'), port: bytes.readUInt16BE(24) }
  }
  if (family !== IPV6) return undefined
  const groups = Array.from({ length: 8 }, (_none, i) => bytes.readUInt16BE(FIXED + 2 * i).toString(16))
  return { address: sameAddress(groups.join(':')), port: bytes.readUInt16BE(48) }
}

/** Walks over the fields, and checks the header by its checksum if there is one. */
function checkFields(bytes: Buffer, begin: number): void {
  for (let at = begin; at < bytes.length; ) {
    const value = at + 3
    const end = value <= bytes.length ? value + bytes.readUInt16BE(at + 1) : Number.POSITIVE_INFINITY
    if (end > bytes.length) throw malformed('a field that is longer than the header')
    if (bytes[at] === FIELD_CHECKSUM) checkSum(bytes, value, end)
    at = end
  }
}

/** The checksum is of the header with four zeros in its place. */
function checkSum(bytes: Buffer, begin: number, end: number): void {
  if (end - begin !== 4) throw malformed(`a checksum of ${end - begin} bytes`)
  const header = Buffer.from(bytes)
  header.fill(0, begin, end)
  if (crc32c(header) !== bytes.readUInt32BE(begin)) throw malformed('a checksum of another header')
}

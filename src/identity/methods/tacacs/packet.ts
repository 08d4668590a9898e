/**
 * The packets of TACACS+ (RFC 8907 4): a header of 12 bytes, and a body that is obfuscated by a stream of MD5 sums. That
 * stream hides a body from a glance and proves nothing about it.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'

export const HEADER_BYTES = 12
/** Longest body, in bytes, that is sent or read; the header could announce 4 GiB. */
export const MAX_BODY = 64 * 1024

const MAJOR = 0xc
const MAX_MINOR = 1
const UNENCRYPTED = 0x01
const SINGLE_CONNECT = 0x04
/** The sequence number is a byte; a session that would pass it has to end (RFC 8907 4.1). */
export const LAST_SEQUENCE = 255

export const PACKET_TYPES = { authentication: 1, authorization: 2, accounting: 3 } as const
export type PacketType = keyof typeof PACKET_TYPES

/** A breach of the protocol, or a server that cannot judge: in words for administrators. */
export class TacacsError extends Error {}

export interface Header {
  type: PacketType
  /** 1 for PAP, 0 else. */
  minor: number
  sequence: number
  session: number
  isSingleConnect: boolean
}

/** Returns the packet. @throws TacacsError for a body over 64 KiB */
export function encodePacket(header: Header, body: Uint8Array, key: Uint8Array): Buffer {
  if (body.length > MAX_BODY)
    throw new TacacsError(`expected a body of at most ${MAX_BODY} bytes, got ${body.length}`)
  const packet = Buffer.alloc(HEADER_BYTES + body.length)
  packet[0] = (MAJOR << 4) | header.minor
  packet[1] = PACKET_TYPES[header.type]
  packet[2] = header.sequence
  packet[3] = header.isSingleConnect ? SINGLE_CONNECT : 0
  packet.writeUInt32BE(header.session, 4)
  packet.writeUInt32BE(body.length, 8)
  packet.set(obscure(body, header, key), HEADER_BYTES)
  return packet
}

/** Reads the first 12 bytes. @throws TacacsError for another protocol, a body in the clear, or one that is too long */
export function readHeader(bytes: Buffer): Header & { length: number } {
  const version = bytes[0] ?? 0
  const minor = version & 0x0f
  if (version >> 4 !== MAJOR || minor > MAX_MINOR)
    throw new TacacsError(
      `expected TACACS+ (version 0xc0 or 0xc1), got 0x${version.toString(16)}: is it another service?`,
    )
  const number = bytes[1]
  const type = (Object.keys(PACKET_TYPES) as PacketType[]).find((one) => PACKET_TYPES[one] === number)
  if (!type) throw new TacacsError(`expected a packet of type 1 to 3, got ${number}`)
  const flags = bytes[3] ?? 0
  if (flags & UNENCRYPTED)
    throw new TacacsError(
      'expected an obfuscated body, got one in the clear: give the server a shared secret',
    )
  const length = bytes.readUInt32BE(8)
  if (length > MAX_BODY) throw new TacacsError(`expected a body of at most ${MAX_BODY} bytes, got ${length}`)
  return {
    type,
    minor,
    sequence: bytes[2] ?? 0,
    session: bytes.readUInt32BE(4),
    isSingleConnect: (flags & SINGLE_CONNECT) !== 0,
    length,
  }
}

/** Obfuscates a body, or makes it readable again: both are the same XOR (RFC 8907 4.5). */
export function obscure(
  body: Uint8Array,
  { session, minor, sequence }: Pick<Header, 'session' | 'minor' | 'sequence'>,
  key: Uint8Array,
): Buffer {
  const id = Buffer.alloc(4)
  id.writeUInt32BE(session)
  const version = Buffer.from([(MAJOR << 4) | minor, sequence])
  const result = Buffer.from(body)
  let pad: Buffer = Buffer.alloc(0)
  for (let from = 0; from < result.length; from += pad.length) {
    pad = createHash('md5').update(id).update(key).update(version).update(pad).digest()
    const end = Math.min(pad.length, result.length - from)
    for (let i = 0; i < end; i++) result[from + i]! ^= pad[i]!
  }
  return result
}

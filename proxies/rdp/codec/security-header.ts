/**
 * The basic security header (MS-RDPBCGR 2.2.8.1.1.2.1), sent before the Client Info and licensing PDUs,
 * inside TLS too.
 */
import { Buffer } from 'node:buffer'
import { ByteReader } from './reader.ts'

export const SECURITY_FLAG = { exchange: 0x1, encrypted: 0x8, info: 0x40, license: 0x80 } as const

const HEADER = 4

/** Returns the flags and a view of the bytes after the header. Throws if RDP's own security encrypts them. */
export function parseSecured(data: Uint8Array): { flags: number; body: Uint8Array } {
  const reader = new ByteReader(data, 'security header')
  const flags = reader.uint16()
  if (flags & (SECURITY_FLAG.encrypted | SECURITY_FLAG.exchange)) {
    reader.fail(`data that TLS alone encrypts was expected, found flags 0x${flags.toString(16)}`)
  }
  reader.skip(2)
  return { flags, body: reader.rest() }
}

export function buildSecured(flags: number, body: Uint8Array): Buffer {
  const bytes = Buffer.alloc(HEADER + body.length)
  bytes.writeUInt16LE(flags)
  bytes.set(body, HEADER)
  return bytes
}

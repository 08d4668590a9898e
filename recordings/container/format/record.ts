/**
 * A record, the unit of the file after its header:
 *
 *     0   1  type: 1 group, 2 checkpoint
 *     1   3  length of the body, big-endian
 *     4   4  sequence: 0 for the first record, increased by one for each, big-endian
 *     8   4  CRC-32 of the eight bytes before, big-endian
 *    12   n  body
 *  12+n  32  link: SHA-256 over the link before this record (32 bytes), the record's header (12 bytes), and the
 *            SHA-256 of the body (32 bytes)
 *
 * The CRC separates a changed length from a cut file; only the links and the signatures prove anything.
 */
import type { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { crc32 } from 'node:zlib'

export const RECORD = { group: 1, checkpoint: 2 } as const
export type RecordType = (typeof RECORD)[keyof typeof RECORD]

export const RECORD_HEADER_LENGTH = 12
export const MAX_SEQUENCE = 0xffff_ffff

export interface RecordHeader {
  type: RecordType
  /** Bytes of the body. */
  length: number
  sequence: number
}

/** Writes a record's header to the first bytes of `target`. */
export function writeRecordHeader(target: Buffer, header: RecordHeader): void {
  target.writeUInt8(header.type, 0)
  target.writeUIntBE(header.length, 1, 3)
  target.writeUInt32BE(header.sequence, 4)
  target.writeUInt32BE(crc32(target.subarray(0, 8)), 8)
}

/**
 * Parses the header at `offset` (12 bytes must be there). Returns undefined if its CRC or its type is wrong.
 */
export function parseRecordHeader(source: Buffer, offset: number): RecordHeader | undefined {
  const type = source[offset]
  if (type !== RECORD.group && type !== RECORD.checkpoint) return undefined
  if (crc32(source.subarray(offset, offset + 8)) !== source.readUInt32BE(offset + 8)) return undefined
  return { type, length: source.readUIntBE(offset + 1, 3), sequence: source.readUInt32BE(offset + 4) }
}

/** Returns the SHA-256 of a record's body, which may come in parts. */
export function bodyHash(...parts: readonly Uint8Array[]): Buffer {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

/** Returns the link after a record. */
export function linkOf(before: Uint8Array, header: Uint8Array, hash: Uint8Array): Buffer {
  return createHash('sha256').update(before).update(header).update(hash).digest()
}

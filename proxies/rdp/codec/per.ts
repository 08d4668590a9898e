/** The subset of aligned PER (X.691) that MCS and GCC need. */
import { Buffer } from 'node:buffer'
import type { ByteReader } from './reader.ts'

/** PER has 14 bits here, and fragments beyond. RDP peers write 15 bits and no fragments. */
export const PER_LENGTH_LIMIT = 0x7fff

/** Reads a length determinant (X.691 section 10.9). */
export function readPerLength(reader: ByteReader): number {
  const first = reader.uint8()
  return first < 0x80 ? first : ((first & 0x7f) << 8) | reader.uint8()
}

/** Throws RangeError if the length exceeds the limit. */
export function buildPerLength(length: number): Buffer {
  if (PER_LENGTH_LIMIT < length) throw new RangeError(`a PER length of ${length} cannot be written`)
  return Buffer.from(length < 0x80 ? [length] : [0x80 | (length >> 8), length & 0xff])
}

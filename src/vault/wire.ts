/** Writers for SSH's data types (RFC 4251 5). */
import { Buffer } from 'node:buffer'

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function uint64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(value)
  return bytes
}

/** Writes text as UTF-8, and bytes unchanged. */
export function string(value: string | Uint8Array): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
  return Buffer.concat([uint32(bytes.length), bytes])
}

/** Writes a non-negative big-endian number: without leading zeros, except one if needed as the sign. */
export function mpint(value: Uint8Array): Buffer {
  const first = value.findIndex((byte) => byte !== 0)
  const digits = first === -1 ? new Uint8Array(0) : value.subarray(first)
  return string((digits[0] ?? 0) < 0x80 ? digits : Buffer.concat([Buffer.of(0), digits]))
}

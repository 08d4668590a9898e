/** How updates of RDP stand in `graphics` frames: `u8 code, u32 length` (big-endian), then the data. */
import { Buffer } from 'node:buffer'

export const MESSAGE_HEAD = 5
/** Bytes of an update's data: what the relay puts together of fragments is no longer. */
export const MAX_UPDATE = 16 * 1024 * 1024

/** Writes what stands before the data of an update, whose code and data are those of the fast path; returns its end. */
export function writeUpdateHead(into: Buffer, at: number, code: number, length: number): number {
  return into.writeUInt32BE(length, into.writeUInt8(code, at))
}

export function encodeUpdateHead(code: number, length: number): Buffer {
  const head = Buffer.alloc(MESSAGE_HEAD)
  writeUpdateHead(head, 0, code, length)
  return head
}

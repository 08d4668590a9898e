/** How updates of RDP stand in `graphics` frames: `u8 code, u32 length` (big-endian), then the data. */
import { Buffer } from 'node:buffer'

export const MESSAGE_HEAD = 5
/** Bytes of an update's data: what the relay puts together of fragments is no longer. */
export const MAX_UPDATE = 16 * 1024 * 1024

/** What a recorder writes before the data of an update, whose code and data are those of the fast path. */
export function encodeUpdateHead(code: number, length: number): Buffer {
  const head = Buffer.alloc(MESSAGE_HEAD)
  head.writeUInt8(code)
  head.writeUInt32BE(length, 1)
  return head
}

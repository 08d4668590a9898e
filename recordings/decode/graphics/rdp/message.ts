/** Layout of RDP updates in `graphics` frames: `u8 code, u32 length` (big-endian), then the data. */

export const MESSAGE_HEAD = 5
/** Limit of an update's data, in bytes: the relay joins fragments up to the same length. */
export const MAX_UPDATE = 16 * 1024 * 1024

/**
 * Writes the head before the data of an update, whose code and data are those of the fast path. Returns the
 * end of the head.
 */
export function writeUpdateHead(into: Uint8Array, at: number, code: number, length: number): number {
  into.set([code, length >>> 24, length >>> 16, length >>> 8, length], at)
  return at + MESSAGE_HEAD
}

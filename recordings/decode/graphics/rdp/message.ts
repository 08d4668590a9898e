/** How updates of RDP stand in `graphics` frames: `u8 code, u32 length` (big-endian), then the data. */

export const MESSAGE_HEAD = 5
/** Bytes of an update's data: what the relay puts together of fragments is no longer. */
export const MAX_UPDATE = 16 * 1024 * 1024

/** Writes what stands before the data of an update, whose code and data are those of the fast path; returns its end. */
export function writeUpdateHead(into: Uint8Array, at: number, code: number, length: number): number {
  into.set([code, length >>> 24, length >>> 16, length >>> 8, length], at)
  return at + MESSAGE_HEAD
}

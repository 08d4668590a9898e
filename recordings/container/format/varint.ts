/**
 * Unsigned LEB128: seven bits a byte, least significant first; the high bit is set if another byte follows.
 */

/** Eight bytes carry 56 bits; numbers over 2^53 - 1 are rejected anyway. */
export const MAX_VARINT_LENGTH = 8

export function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) length++
  return length
}

/** Writes `value` (an integer from 0 to 2^53 - 1) at `offset` and returns the offset after it. */
export function writeVarint(target: Uint8Array, offset: number, value: number): number {
  let rest = value
  let at = offset
  while (rest >= 0x80) {
    // `%` and not `&`: bit operators would cut the number to 32 bits.
    target[at++] = (rest % 0x80) | 0x80
    rest = Math.floor(rest / 0x80)
  }
  target[at++] = rest
  return at
}

/**
 * Reads a varint. Returns undefined if it is cut, too long, over `limit`, or not in its shortest form. The
 * returned `offset` is that of the byte after it.
 */
export function readVarint(
  source: Uint8Array,
  offset: number,
  limit = Number.MAX_SAFE_INTEGER,
): { value: number; offset: number } | undefined {
  let value = 0
  let scale = 1
  for (let index = 0; index < MAX_VARINT_LENGTH; index++) {
    const byte = source[offset + index]
    if (byte === undefined) return undefined
    value += (byte & 0x7f) * scale
    if (byte < 0x80) {
      if (value > limit || (byte === 0 && index > 0)) return undefined
      return { value, offset: offset + index + 1 }
    }
    scale *= 0x80
  }
  return undefined
}

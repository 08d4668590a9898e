/** Numbers of two bytes, big-endian. */

/** The caller has checked the bounds. */
export function uint16At(bytes: Uint8Array, offset: number): number {
  return (bytes[offset]! << 8) | bytes[offset + 1]!
}

/** What does not fit becomes the nearest that does. */
export function uint16Bytes(number: number): [high: number, low: number] {
  const bounded = Math.min(Math.max(Math.trunc(number), 0), 0xffff)
  return [bounded >> 8, bounded & 0xff]
}

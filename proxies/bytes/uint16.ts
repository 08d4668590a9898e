/** Numbers of two bytes, big-endian. */

/** The caller has checked the bounds. */
export function uint16At(bytes: Uint8Array, offset: number): number {
  return (bytes[offset]! << 8) | bytes[offset + 1]!
}

/** Clamps a number that does not fit to the nearest one that does. */
export function uint16Bytes(number: number): [high: number, low: number] {
  const bounded = Math.min(Math.max(Math.trunc(number), 0), 0xffff)
  return [bounded >> 8, bounded & 0xff]
}

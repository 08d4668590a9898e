/** Numbers of four bytes, big-endian. */

/** The caller has checked the bounds. */
export function uint32At(bytes: Uint8Array, offset: number): number {
  return (
    bytes[offset]! * 0x1000000 + ((bytes[offset + 1]! << 16) | (bytes[offset + 2]! << 8) | bytes[offset + 3]!)
  )
}

/** Converts bytes to text. */
import { Buffer } from 'node:buffer'

/** Returns one character per byte: the exact bytes as a string that can be compared. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

/**
 * Decodes UTF-8 for people and recordings; invalid bytes become U+FFFD. Never compare or forward the result.
 */
export function displayText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

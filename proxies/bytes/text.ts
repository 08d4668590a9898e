/** Bytes as text. */
import { Buffer } from 'node:buffer'

/** One character per byte: the exact bytes as a string that can be compared. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1')
}

/** UTF-8 for people and recordings; what is none becomes U+FFFD. Never compare or forward this. */
export function displayText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

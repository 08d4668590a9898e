/** The header of fast-path PDUs in both directions (MS-RDPBCGR 2.2.8.1.2 and 2.2.9.1.2). */
import { ByteReader } from './reader.ts'

/** Bit of the first length byte: a second length byte follows. */
const LONG_LENGTH = 0x80
/** FASTPATH_…_SECURE_CHECKSUM and …_ENCRYPTED: RDP's own security. */
const SECURITY = 0xc0

/** Skips the header of a whole PDU, measured by the framer. `head` is its first byte. */
export function readFastPath(pdu: Uint8Array, what: string): { head: number; reader: ByteReader } {
  const reader = new ByteReader(pdu, what)
  const head = reader.uint8()
  if (head & SECURITY) {
    reader.fail(`data that TLS alone encrypts was expected, found flags 0x${(head >> 6).toString(16)}`)
  }
  if (reader.uint8() & LONG_LENGTH) reader.skip(1)
  return { head, reader }
}

/** Returns the header of a PDU with `length` bytes after it; the length always takes two bytes. */
export function fastPathHeader(head: number, length: number): Uint8Array {
  const whole = length + 3
  return Uint8Array.of(head, LONG_LENGTH | (whole >> 8), whole & 0xff)
}

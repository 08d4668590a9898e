/** The preconnection PDU (MS-RDPEPS 2.2.1), which a client may send before the X.224 connection request. */
import { ByteReader } from './reader.ts'
import { untilNul, utf16Text } from './utf16.ts'

const HEADER = 16
/** Bytes of the PDU. Its blob is a name or a token; the specification sets no limit. */
export const PRECONNECTION_LIMIT = 2048
const VERSION_ID = 1
const VERSION_BLOB = 2

export interface Preconnection {
  /** cbSize: bytes of the PDU. */
  length: number
  id: number
  blob?: string
}

/** Returns the length of the PDU that begins here, or undefined with fewer than four bytes. */
export function preconnectionLength(bytes: Uint8Array): number | undefined {
  if (bytes.length < 4) return undefined
  const reader = new ByteReader(bytes, 'preconnection PDU')
  const length = reader.uint32()
  if (length < HEADER || PRECONNECTION_LIMIT < length) {
    reader.fail(`a length of ${HEADER} to ${PRECONNECTION_LIMIT} bytes was expected, found ${length}`)
  }
  return length
}

/** Parses a whole PDU. */
export function parsePreconnection(bytes: Uint8Array): Preconnection {
  const reader = new ByteReader(bytes, 'preconnection PDU')
  const length = reader.uint32()
  reader.skip(4)
  const version = reader.expect('version', reader.uint32(), VERSION_ID, VERSION_BLOB)
  const id = reader.uint32()
  if (version === VERSION_ID) return { length, id }
  const characters = reader.uint16()
  return { length, id, blob: untilNul(utf16Text(reader.bytes(characters * 2))) }
}

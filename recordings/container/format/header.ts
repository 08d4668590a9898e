/**
 * The file header:
 *
 *     0   8  magic `SPREC\r\n` 0x1a (a text-mode copy breaks it visibly)
 *     8   2  version, big-endian
 *    10   2  zero
 *    12   4  length of the metadata, big-endian
 *    16   n  metadata: JSON object, UTF-8, values are strings and numbers
 *  16+n  32  link: SHA-256 over all bytes before
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { RecordingError } from './error.ts'
import { FORMAT_VERSION, LINK_LENGTH, MAX_METADATA, MAX_SESSION_ID, PUBLIC_KEY_LENGTH } from './limits.ts'

export const MAGIC = Buffer.from('SPREC\r\n\x1a', 'latin1')
export const HEADER_PREFIX_LENGTH = 16

/** Fields of the header in clear text: user, addresses, time, signing key. */
export type Metadata = Record<string, string | number>

/** The fields that every header has. */
export interface Header {
  session: string
  /** Id of the signing key, as computed by `signerId`. */
  signingKey: string
  /** Ed25519, 32 bytes. */
  publicKey: Buffer
  metadata: Metadata
}

/** Returns a signing key's id: the first eight bytes of SHA-256 over its 32 bytes, in hex. */
export function signerId(publicKey: Uint8Array): string {
  return createHash('sha256').update(publicKey).digest('hex').slice(0, 16)
}

/** Returns the metadata fields that name the signer; `publicKey` is the raw Ed25519 key. */
export function signerMetadata(publicKey: Uint8Array): { signing_key: string; signing_public_key: string } {
  return { signing_key: signerId(publicKey), signing_public_key: Buffer.from(publicKey).toString('base64') }
}

/**
 * Returns header and link for this metadata. Throws RecordingError `bad_header` if a field is missing or too
 * long.
 */
export function encodeHeader(metadata: Metadata): Buffer {
  const json = Buffer.from(JSON.stringify(metadata), 'utf8')
  if (json.length > MAX_METADATA) {
    throw new RecordingError(
      'bad_header',
      `expected at most ${MAX_METADATA} bytes of metadata, got ${json.length}`,
    )
  }
  headerOf(metadata)
  const header = Buffer.alloc(HEADER_PREFIX_LENGTH + json.length + LINK_LENGTH)
  MAGIC.copy(header, 0)
  header.writeUInt16BE(FORMAT_VERSION, 8)
  header.writeUInt32BE(json.length, 12)
  json.copy(header, HEADER_PREFIX_LENGTH)
  const end = HEADER_PREFIX_LENGTH + json.length
  createHash('sha256').update(header.subarray(0, end)).digest().copy(header, end)
  return header
}

/** Returns the length of header and link, from the first 16 bytes. Throws RecordingError. */
export function headerLength(prefix: Buffer): number {
  if (!prefix.subarray(0, MAGIC.length).equals(MAGIC)) {
    throw new RecordingError('not_a_recording', 'the file does not begin with the magic of a recording', 0)
  }
  const version = prefix.readUInt16BE(8)
  if (version !== FORMAT_VERSION) {
    throw new RecordingError(
      'unsupported_version',
      `expected format version ${FORMAT_VERSION}, got ${version}; read it with a newer sallyport`,
      8,
    )
  }
  const length = prefix.readUInt32BE(12)
  if (length > MAX_METADATA || prefix.readUInt16BE(10) !== 0) {
    throw new RecordingError(
      'damaged_header',
      `the header's length field says ${length}: its bytes were changed`,
      10,
    )
  }
  return HEADER_PREFIX_LENGTH + length + LINK_LENGTH
}

/** Parses header and link; `bytes` has exactly `headerLength` bytes. Throws RecordingError. */
export function parseHeader(bytes: Buffer): Header {
  const end = bytes.length - LINK_LENGTH
  const link = createHash('sha256').update(bytes.subarray(0, end)).digest()
  if (!link.equals(bytes.subarray(end))) {
    throw new RecordingError('damaged_header', `bytes 0 to ${bytes.length} (the file header) were changed`, 0)
  }
  let parsed: unknown
  try {
    parsed = JSON.parse(
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(HEADER_PREFIX_LENGTH, end)),
    )
  } catch {
    throw new RecordingError('bad_header', 'expected a JSON object as metadata', HEADER_PREFIX_LENGTH)
  }
  if (!isMetadata(parsed)) {
    throw new RecordingError('bad_header', 'expected metadata of strings and numbers', HEADER_PREFIX_LENGTH)
  }
  return headerOf(parsed)
}

function isMetadata(value: unknown): value is Metadata {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).every((field) => typeof field === 'string' || typeof field === 'number')
}

function headerOf(metadata: Metadata): Header {
  const { session, signing_key: signingKey, signing_public_key: encoded } = metadata
  if (typeof session !== 'string' || session === '' || Buffer.byteLength(session) > MAX_SESSION_ID) {
    throw new RecordingError(
      'bad_header',
      `expected a session id of 1 to ${MAX_SESSION_ID} bytes in the metadata`,
    )
  }
  const publicKey = Buffer.from(typeof encoded === 'string' ? encoded : '', 'base64')
  if (publicKey.length !== PUBLIC_KEY_LENGTH || signingKey !== signerId(publicKey)) {
    throw new RecordingError(
      'bad_header',
      'expected signing_public_key (32 bytes, base64) and its id in signing_key',
    )
  }
  return { session, signingKey, publicKey, metadata }
}

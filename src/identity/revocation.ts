/**
 * Lists of revoked keys and certificates: OpenSSH's key revocation lists (PROTOCOL.krl, made by `ssh-keygen
 * -k`), and plain lists of public keys, one per line.
 */
import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { type OfferedKey, parseOfferedKey } from './certificate.ts'
import { type PublicKey, PublicKeyError } from './public-key.ts'
import { Reader } from './reader.ts'

export const MAX_LIST_BYTES = 16 * 1024 * 1024
const MAX_ENTRIES = 1_000_000

const MAGIC = Buffer.from('SSHKRL\n\0', 'latin1')
const FORMAT_VERSION = 1
const SECTION = { certificates: 1, key: 2, sha1: 3, signature: 4, sha256: 5, extension: 255 } as const
const CERTIFICATES = {
  serialList: 0x20,
  serialRange: 0x21,
  serialBitmap: 0x22,
  keyId: 0x23,
  extension: 0x39,
} as const

/** The list cannot be used: everything counts as revoked. The message is for administrators. */
export class RevocationListError extends Error {
  override readonly name = 'RevocationListError'
}

const malformed = (message: string): RevocationListError =>
  new RevocationListError(`the revocation list ${message}`)

interface RevokedCertificates {
  /** The authority's key; empty for any authority. */
  authority: Buffer
  serials: Set<bigint>
  /** First and last serial, both revoked. */
  ranges: [bigint, bigint][]
  bitmaps: { offset: bigint; bits: Buffer }[]
  keyIds: Set<string>
}

/** A key to check. Keys of old devices may be known by their bytes only. */
export type Revocable = Pick<OfferedKey, 'certificate'> & { key: Pick<PublicKey, 'blob'> }

export class RevocationList {
  /** Blobs and hashes, one character per byte. */
  readonly keys = new Set<string>()
  readonly sha1 = new Set<string>()
  readonly sha256 = new Set<string>()
  readonly certificates: RevokedCertificates[] = []

  /** Whether the key, its certificate, or the certificate's authority is revoked. */
  revokes({ key, certificate }: Revocable): boolean {
    if (this.#hasKey(key.blob)) return true
    if (!certificate) return false
    const { authority, serial, keyId } = certificate
    if (this.#hasKey(authority.blob)) return true
    return this.certificates.some(
      (list) =>
        (list.authority.length === 0 || list.authority.equals(authority.blob)) &&
        (list.keyIds.has(keyId.toString('latin1')) || hasSerial(list, serial)),
    )
  }

  #hasKey(blob: Buffer): boolean {
    const hash = (name: string) => createHash(name).update(blob).digest().toString('latin1')
    return (
      this.keys.has(blob.toString('latin1')) ||
      (this.sha1.size > 0 && this.sha1.has(hash('sha1'))) ||
      (this.sha256.size > 0 && this.sha256.has(hash('sha256')))
    )
  }
}

/** Zero stands for a certificate without serial, which no serial revokes. */
function hasSerial({ serials, ranges, bitmaps }: RevokedCertificates, serial: bigint): boolean {
  if (serial === 0n) return false
  if (serials.has(serial)) return true
  if (ranges.some(([from, to]) => from <= serial && serial <= to)) return true
  return bitmaps.some(({ offset, bits }) => {
    const bit = serial - offset
    if (bit < 0n || BigInt(bits.length * 8) <= bit) return false
    // An mpint: the last byte holds the lowest bits.
    const at = Number(bit)
    return ((bits[bits.length - 1 - Math.floor(at / 8)]! >> (at % 8)) & 1) === 1
  })
}

/** Parses a list of either kind. @throws RevocationListError */
export function parseRevocationList(file: Uint8Array): RevocationList {
  if (MAX_LIST_BYTES < file.length) {
    throw malformed(`has ${file.length} bytes: expected at most ${MAX_LIST_BYTES}`)
  }
  const bytes = Buffer.from(file)
  return bytes.subarray(0, MAGIC.length).equals(MAGIC) ? parseBinary(bytes) : parseLines(bytes)
}

/** Parses keys, or certificates in place of their keys: `TYPE BASE64 COMMENT`. Skips empty lines and `#`. */
function parseLines(bytes: Buffer): RevocationList {
  const list = new RevocationList()
  for (const [index, line] of bytes.toString('latin1').split(/\r?\n/).entries()) {
    if (/^\s*(#|$)/.test(line)) continue
    const [, base64 = ''] = /^[!-~]+[ \t]+([A-Za-z0-9+/]+={0,2})(?:[ \t]|$)/.exec(line.trim()) ?? []
    try {
      list.keys.add(parseOfferedKey(Buffer.from(base64, 'base64')).key.blob.toString('latin1'))
    } catch (error) {
      if (!(error instanceof PublicKeyError)) throw error
      throw malformed(`has a line ${index + 1} that is no public key: ${error.message}`)
    }
  }
  return list
}

function parseBinary(bytes: Buffer): RevocationList {
  const list = new RevocationList()
  const reader = new Reader(bytes.subarray(MAGIC.length), malformed)
  const version = reader.uint32()
  if (version !== FORMAT_VERSION) throw malformed(`is of format ${version}: expected ${FORMAT_VERSION}`)
  // Skips the list's own version, its date, flags, reserved field, comment.
  for (let field = 0; field < 3; field++) reader.uint64()
  reader.string()
  reader.string()
  while (!reader.atEnd) {
    const type = reader.byte()
    if (type === SECTION.signature)
      throw malformed('is signed, which is not supported: make one without -s CA')
    const section = new Reader(reader.string(), malformed)
    switch (type) {
      case SECTION.certificates:
        list.certificates.push(readCertificates(section))
        break
      case SECTION.key:
        addAll(list.keys, section)
        break
      case SECTION.sha1:
        addAll(list.sha1, section)
        break
      case SECTION.sha256:
        addAll(list.sha256, section)
        break
      case SECTION.extension:
        skipExtension(section)
        break
      default:
        throw malformed(`has a section of the unknown type ${type}`)
    }
  }
  return list
}

function addAll(set: Set<string>, section: Reader): void {
  for (const entry of section.strings(MAX_ENTRIES)) set.add(entry.toString('latin1'))
}

/**
 * Skips `string` name, `boolean` critical, `string` contents. An unknown critical extension makes the list
 * unusable.
 */
function skipExtension(section: Reader): void {
  const name = section.string().toString('latin1')
  const isCritical = section.byte() !== 0
  section.string()
  section.end()
  if (isCritical) throw malformed(`has the unknown critical extension ${JSON.stringify(name)}`)
}

function readCertificates(reader: Reader): RevokedCertificates {
  const revoked: RevokedCertificates = {
    authority: reader.string(),
    serials: new Set(),
    ranges: [],
    bitmaps: [],
    keyIds: new Set(),
  }
  reader.string()
  while (!reader.atEnd) {
    const type = reader.byte()
    const section = new Reader(reader.string(), malformed)
    switch (type) {
      case CERTIFICATES.serialList:
        while (!section.atEnd) revoked.serials.add(section.uint64())
        break
      case CERTIFICATES.serialRange:
        revoked.ranges.push([section.uint64(), section.uint64()])
        section.end()
        break
      case CERTIFICATES.serialBitmap:
        revoked.bitmaps.push({ offset: section.uint64(), bits: section.string() })
        section.end()
        break
      case CERTIFICATES.keyId:
        addAll(revoked.keyIds, section)
        break
      case CERTIFICATES.extension:
        skipExtension(section)
        break
      default:
        throw malformed(`has a certificate section of the unknown type ${type}`)
    }
  }
  return revoked
}

/**
 * The index beside a recording (`session.idx`, docs/recording-format.md), to the byte. Only an aid: an index
 * with any fault is rebuilt from the recording.
 *
 *     0   8  magic `SPIDX\r\n` 0x1a
 *     8   2  version: 1
 *    10   2  zero
 *    12   4  number of the directory's block
 *    16   8  size of the recording's file
 *    24  32  the recording's digest
 *    56  32  salt
 *    88   8  offset of the directory's block
 *    96   4  its length
 *   100      blocks
 *
 * A block: ciphertext and tag, AES-256-GCM under a key of this file alone, with the block's number as the nonce.
 * The plain text is one zstd frame. Numbers are big-endian.
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, createSecretKey, hkdfSync, type KeyObject } from 'node:crypto'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { GCM_NONCE_LENGTH, GCM_TAG_LENGTH } from './limits.ts'

export const INDEX_FILE_NAME = 'session.idx'
export const INDEX_VERSION = 1
export const INDEX_HEADER_LENGTH = 100
export const SALT_LENGTH = 32
/** Largest block before compression. */
export const MAX_BLOCK_PLAIN = 32 * 1024 * 1024
/** Largest block in the file. */
export const MAX_BLOCK = MAX_BLOCK_PLAIN + 1024

const MAGIC = Buffer.from('SPIDX\r\n\x1a', 'latin1')
const DIGEST_LENGTH = 32
/** Start of the header's part that is written before the blocks: it is their additional data. */
const BOUND_FROM = 16
const BOUND_TO = 88

export interface IndexHeader {
  directory: { number: number; offset: number; length: number }
  /** Size of the recording's file. */
  size: number
  /** Digest of the recording, in lower-case hex. */
  digest: string
  salt: Buffer
}

export function encodeIndexHeader({ directory, size, digest, salt }: IndexHeader): Buffer {
  const header = Buffer.alloc(INDEX_HEADER_LENGTH)
  MAGIC.copy(header, 0)
  header.writeUInt16BE(INDEX_VERSION, 8)
  header.writeUInt32BE(directory.number, 12)
  header.writeBigUInt64BE(BigInt(size), 16)
  header.write(digest, 24, DIGEST_LENGTH, 'hex')
  salt.copy(header, 56, 0, SALT_LENGTH)
  header.writeBigUInt64BE(BigInt(directory.offset), 88)
  header.writeUInt32BE(directory.length, 96)
  return header
}

/** Parses the header. Returns undefined if it is not an index of this version. */
export function parseIndexHeader(bytes: Buffer): IndexHeader | undefined {
  if (bytes.length < INDEX_HEADER_LENGTH || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return undefined
  const length = bytes.readUInt32BE(96)
  if (bytes.readUInt16BE(8) !== INDEX_VERSION || length > MAX_BLOCK) return undefined
  return {
    directory: { number: bytes.readUInt32BE(12), offset: Number(bytes.readBigUInt64BE(88)), length },
    size: Number(bytes.readBigUInt64BE(16)),
    digest: bytes.toString('hex', 24, 24 + DIGEST_LENGTH),
    salt: Buffer.from(bytes.subarray(56, 56 + SALT_LENGTH)),
  }
}

/**
 * Seals and opens the blocks of one file. Its key is derived from the session's (HKDF-SHA256, RFC 5869) with
 * a random salt for each file, so that no nonce repeats one of another index or of a group.
 */
export class BlockCipher {
  readonly #key: KeyObject
  readonly #bound: Buffer

  constructor(sessionKey: Uint8Array, header: Pick<IndexHeader, 'size' | 'digest' | 'salt'>) {
    const key = hkdfSync('sha256', sessionKey, header.salt, 'sallyport-index', 32)
    this.#key = createSecretKey(Buffer.from(key))
    const directory = { number: 0, offset: 0, length: 0 }
    this.#bound = encodeIndexHeader({ ...header, directory }).subarray(BOUND_FROM, BOUND_TO)
  }

  /** Seals a block. Use each number at most once. */
  seal(number: number, plain: Uint8Array): Buffer {
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonceOf(number))
    cipher.setAAD(this.#bound)
    const ciphertext = cipher.update(zstdCompressSync(plain))
    cipher.final()
    return Buffer.concat([ciphertext, cipher.getAuthTag()])
  }

  /** Opens a block. Returns undefined if the block is not the one that was sealed under this number. */
  open(number: number, block: Buffer): Buffer | undefined {
    if (block.length < GCM_TAG_LENGTH) return undefined
    const end = block.length - GCM_TAG_LENGTH
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonceOf(number), {
      authTagLength: GCM_TAG_LENGTH,
    })
    decipher.setAAD(this.#bound)
    decipher.setAuthTag(block.subarray(end))
    try {
      const plain = decipher.update(block.subarray(0, end))
      decipher.final()
      return zstdDecompressSync(plain, { maxOutputLength: MAX_BLOCK_PLAIN })
    } catch {
      return undefined
    }
  }
}

function nonceOf(number: number): Buffer {
  const nonce = Buffer.alloc(GCM_NONCE_LENGTH)
  nonce.writeUInt32BE(number, GCM_NONCE_LENGTH - 4)
  return nonce
}

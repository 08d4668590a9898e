/** AES in CBC mode with ciphertext stealing, the last two blocks swapped always (RFC 3962 section 5, CBC-CS3). */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv } from 'node:crypto'
import { MalformedError } from '../../proxies/bytes/malformed.ts'

export const BLOCK = 16

/** Encrypts at least one block, from a zero vector; the output has the length of the input. */
export function encryptCts(key: Uint8Array, plain: Uint8Array): Buffer {
  requireBlock(plain)
  const count = Math.ceil(plain.length / BLOCK)
  const padded = Buffer.alloc(count * BLOCK)
  padded.set(plain)
  const blocks = cbc(key, padded)
  padded.fill(0)
  if (count === 1) return blocks
  const last = (count - 1) * BLOCK
  return Buffer.concat([
    blocks.subarray(0, last - BLOCK),
    blocks.subarray(last),
    blocks.subarray(last - BLOCK, plain.length - BLOCK),
  ])
}

/** Decrypts what `encryptCts` made. @throws MalformedError if it is shorter than a block */
export function decryptCts(key: Uint8Array, sealed: Uint8Array): Buffer {
  requireBlock(sealed)
  const count = Math.ceil(sealed.length / BLOCK)
  const rest = sealed.length - (count - 1) * BLOCK
  if (count === 1) return uncbc(key, sealed)
  const last = (count - 1) * BLOCK
  const swapped = sealed.subarray(last - BLOCK, last)
  // The stolen end of the last but one block is in the last one, decrypted without its chaining.
  const stolen = uncbc(key, swapped).subarray(rest)
  const plain = uncbc(
    key,
    Buffer.concat([sealed.subarray(0, last - BLOCK), sealed.subarray(last), stolen, swapped]),
  )
  return plain.subarray(0, sealed.length)
}

/** Plain CBC of whole blocks from a zero vector, as key derivation needs it. */
export function cbc(key: Uint8Array, blocks: Uint8Array): Buffer {
  const cipher = createCipheriv(`aes-${key.length * 8}-cbc`, key, Buffer.alloc(BLOCK)).setAutoPadding(false)
  return Buffer.concat([cipher.update(blocks), cipher.final()])
}

function uncbc(key: Uint8Array, blocks: Uint8Array): Buffer {
  const cipher = createDecipheriv(`aes-${key.length * 8}-cbc`, key, Buffer.alloc(BLOCK)).setAutoPadding(false)
  return Buffer.concat([cipher.update(blocks), cipher.final()])
}

function requireBlock(bytes: Uint8Array): void {
  if (bytes.length < BLOCK)
    throw new MalformedError(`Kerberos: at least ${BLOCK} encrypted bytes were expected, got ${bytes.length}`)
}

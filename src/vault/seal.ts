/**
 * Sealed values: AES-256-GCM under the data key. A value's place (table, object, field) is authenticated with it, so
 * that a sealed value does not open after being copied to another row.
 *
 *     byte    version, 1
 *     8       id of the data key
 *     12      nonce, random
 *     n       ciphertext
 *     16      tag
 */
import { Buffer } from 'node:buffer'
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { Secret } from '../model/secret.ts'

const VERSION = 1
export const KEY_BYTES = 32
export const KEY_ID_BYTES = 8
const NONCE_BYTES = 12
const TAG_BYTES = 16
const HEADER_BYTES = 1 + KEY_ID_BYTES

export interface Place {
  table: string
  id: string
  field: string
}

export interface DataKey {
  /** 8 bytes that identify the key; not secret. */
  id: Uint8Array
  /** 32 bytes. */
  key: Secret
}

/** A sealed value does not open: it was altered, moved from another place, or sealed under another key. */
export class UnsealError extends Error {
  override readonly name = 'UnsealError'
}

/** Whether the bytes begin like a value sealed under this key. */
export function isSealedUnder(key: Pick<DataKey, 'id'>, bytes: Uint8Array): boolean {
  return bytes[0] === VERSION && Buffer.from(bytes.subarray(1, HEADER_BYTES)).equals(key.id)
}

/** Seals a secret for its place, with a new random nonce: GCM's bound is 2^32 values per key. */
export function seal(key: DataKey, place: Place, secret: Secret): Uint8Array {
  const header = Buffer.concat([Buffer.of(VERSION), key.id])
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', key.key.reveal(), nonce, { authTagLength: TAG_BYTES })
  cipher.setAAD(associated(header, place))
  return Buffer.concat([header, nonce, cipher.update(secret.reveal()), cipher.final(), cipher.getAuthTag()])
}

/** @throws UnsealError if `sealed` is not a value sealed under this key for this place */
export function open(key: DataKey, place: Place, sealed: Uint8Array): Secret {
  const where = `the sealed ${place.field} of ${place.table} ${place.id}`
  const bytes = Buffer.from(sealed.buffer, sealed.byteOffset, sealed.byteLength)
  if (bytes.length < HEADER_BYTES + NONCE_BYTES + TAG_BYTES || bytes[0] !== VERSION) {
    throw new UnsealError(`${where} is not in the format of this program: restore it from a backup`)
  }
  const header = bytes.subarray(0, HEADER_BYTES)
  if (!header.subarray(1).equals(key.id)) {
    throw new UnsealError(
      `${where} was sealed under another data key: restore the database that it belongs to`,
    )
  }
  const nonce = bytes.subarray(HEADER_BYTES, HEADER_BYTES + NONCE_BYTES)
  const decipher = createDecipheriv('aes-256-gcm', key.key.reveal(), nonce, { authTagLength: TAG_BYTES })
  decipher.setAAD(associated(header, place))
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
  const clear = decipher.update(bytes.subarray(HEADER_BYTES + NONCE_BYTES, -TAG_BYTES))
  try {
    decipher.final()
    return Secret.of(clear)
  } catch {
    throw new UnsealError(`${where} was changed or belongs elsewhere: restore it from a backup`)
  } finally {
    clear.fill(0)
  }
}

/** Prefixes each part with its length, so that no two places give the same bytes. */
function associated(header: Uint8Array, place: Place): Buffer {
  const parts = [place.table, place.id, place.field].flatMap((text) => {
    const bytes = Buffer.from(text, 'utf8')
    const length = Buffer.alloc(4)
    length.writeUInt32BE(bytes.length)
    return [length, bytes]
  })
  return Buffer.concat([Buffer.from('sallyport seal'), header, ...parts])
}

/** Keytabs, the files with the keys of a service (MIT's format, version 0x0502). */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../proxies/bytes/malformed.ts'
import { encryptionType } from './encryption.ts'
import type { Key } from './messages.ts'

const VERSION = 0x0502
const MAX_BYTES = 65_536

export interface KeytabEntry {
  realm: string
  components: string[]
  version: number
  key: Key
}

/**
 * Reads the keys of spoken encryption types; others are passed by. The keys are copies, which the caller wipes.
 * @throws MalformedError
 */
export function readKeytab(bytes: Uint8Array): KeytabEntry[] {
  if (bytes.length < 2 || MAX_BYTES < bytes.length)
    throw new MalformedError(`a keytab of 2 to ${MAX_BYTES} bytes was expected, got ${bytes.length}`)
  const file = new Cursor(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
  const version = file.uint16()
  if (version !== VERSION)
    throw new MalformedError(`a keytab of version 0x0502 was expected, got 0x${version.toString(16)}`)
  const entries: KeytabEntry[] = []
  while (file.left > 0) {
    const size = file.int32()
    if (size === 0) break
    // A negative size is that of a hole, which an entry left that was removed.
    const part = new Cursor(file.take(Math.abs(size)))
    const entry = size > 0 ? readEntry(part) : undefined
    if (entry) entries.push(entry)
  }
  return entries
}

function readEntry(part: Cursor): KeytabEntry | undefined {
  const count = part.uint16()
  const realm = part.data().toString()
  const components = Array.from({ length: count }, () => part.data().toString())
  // The type of the name and the time of the entry say nothing about the key.
  part.take(8)
  const short = part.take(1)[0]!
  const number = part.uint16()
  const bytes = part.data()
  const long = part.left >= 4 ? part.int32() >>> 0 : 0
  const type = encryptionType(number)
  if (!type || bytes.length !== type.keyBytes) return undefined
  return { realm, components, version: long === 0 ? short : long, key: { type, bytes: Buffer.from(bytes) } }
}

class Cursor {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  get left(): number {
    return this.#bytes.length - this.#at
  }

  take(size: number): Buffer {
    if (this.left < size)
      throw new MalformedError(`keytab: ${size} bytes were expected at offset ${this.#at}, got ${this.left}`)
    this.#at += size
    return this.#bytes.subarray(this.#at - size, this.#at)
  }

  uint16(): number {
    return this.take(2).readUInt16BE()
  }

  int32(): number {
    return this.take(4).readInt32BE()
  }

  data(): Buffer {
    return this.take(this.uint16())
  }
}

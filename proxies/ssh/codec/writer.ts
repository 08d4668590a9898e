/** Writes the data types of RFC 4251 section 5 into one message. */
import { Buffer } from 'node:buffer'

/** Writes a big-endian uint32 at `offset`. The caller has checked the bounds. */
export function setUint32At(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24
  bytes[offset + 1] = value >>> 16
  bytes[offset + 2] = value >>> 8
  bytes[offset + 3] = value
}

/** Strings are written as UTF-8, bytes unchanged. */
export class Writer {
  #bytes: Buffer
  #length = 0

  /** `size` is a guess of the message's length; the buffer grows as needed. */
  constructor(size = 64) {
    this.#bytes = Buffer.allocUnsafe(size)
  }

  byte(value: number): this {
    this.#room(1)
    this.#bytes[this.#length++] = value
    return this
  }

  boolean(value: boolean): this {
    return this.byte(value ? 1 : 0)
  }

  uint32(value: number): this {
    this.#room(4)
    setUint32At(this.#bytes, this.#length, value)
    this.#length += 4
    return this
  }

  uint64(value: bigint): this {
    this.#room(8)
    this.#bytes.writeBigUInt64BE(value, this.#length)
    this.#length += 8
    return this
  }

  string(value: string | Uint8Array): this {
    const bytes = typeof value === 'string' ? Buffer.from(value, 'utf8') : value
    return this.uint32(bytes.length).raw(bytes)
  }

  nameList(names: readonly string[]): this {
    return this.string(names.join(','))
  }

  /** Writes bytes without a length before them. */
  raw(bytes: Uint8Array): this {
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
    return this
  }

  /** Returns the message. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(length: number): void {
    const needed = this.#length + length
    if (needed <= this.#bytes.length) return
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}

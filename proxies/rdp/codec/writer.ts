/** Writes the numbers and fields of one RDP message: little-endian, big-endian if the name ends in `be`. */
import { Buffer } from 'node:buffer'

export class ByteWriter {
  #bytes: Buffer
  #length = 0

  /** `size` is an estimate of the message's length; the buffer grows as needed. */
  constructor(size = 64) {
    this.#bytes = Buffer.alloc(size)
  }

  get length(): number {
    return this.#length
  }

  uint8(value: number): this {
    this.#room(1)
    this.#bytes[this.#length++] = value
    return this
  }

  uint16(value: number): this {
    this.#room(2)
    this.#bytes.writeUInt16LE(value, this.#length)
    this.#length += 2
    return this
  }

  uint32(value: number): this {
    this.#room(4)
    this.#bytes.writeUInt32LE(value, this.#length)
    this.#length += 4
    return this
  }

  uint16be(value: number): this {
    this.#room(2)
    this.#bytes.writeUInt16BE(value, this.#length)
    this.#length += 2
    return this
  }

  bytes(bytes: Uint8Array): this {
    this.#room(bytes.length)
    this.#bytes.set(bytes, this.#length)
    this.#length += bytes.length
    return this
  }

  zeros(count: number): this {
    this.#room(count)
    this.#bytes.fill(0, this.#length, this.#length + count)
    this.#length += count
    return this
  }

  /** Returns the message. The writer must not be used afterwards. */
  finish(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  #room(length: number): void {
    const needed = this.#length + length
    if (needed <= this.#bytes.length) return
    const larger = Buffer.alloc(Math.max(needed, this.#bytes.length * 2))
    larger.set(this.#bytes.subarray(0, this.#length))
    this.#bytes = larger
  }
}

/** The beginning of a message that is incomplete. */
import { Buffer } from 'node:buffer'

const FIRST_SIZE = 64
/** A larger buffer is freed after its message. */
const KEPT_SIZE = 4096

/** Grows by doubling, so that a peer that sends single bytes costs no more than its bytes. */
export class PendingBytes {
  #buffer = Buffer.alloc(0)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Returns all bytes, as a view that is valid until `append` or `clear`. */
  get bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  append(chunk: Uint8Array, from: number, to: number): void {
    const length = this.#length + to - from
    if (this.#buffer.length < length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(FIRST_SIZE, length, 2 * this.#buffer.length))
      this.#buffer.copy(grown, 0, 0, this.#length)
      this.#buffer = grown
    }
    this.#buffer.set(chunk.subarray(from, to), this.#length)
    this.#length = length
  }

  clear(): void {
    this.#length = 0
    if (KEPT_SIZE < this.#buffer.length) this.#buffer = Buffer.alloc(0)
  }
}

/** Reads RDP's little-endian numbers from one update; every read is checked. */
import { MalformedGraphics } from '../malformed.ts'

export class UpdateReader {
  readonly #bytes: Uint8Array
  readonly #what: string
  #at = 0

  /** The parameter `what` names the bytes in errors. */
  constructor(bytes: Uint8Array, what: string) {
    this.#bytes = bytes
    this.#what = what
  }

  get remaining(): number {
    return this.#bytes.length - this.#at
  }

  u8(): number {
    return this.#bytes[this.#take(1)]!
  }

  u16(): number {
    const at = this.#take(2)
    return this.#bytes[at]! | (this.#bytes[at + 1]! << 8)
  }

  u32(): number {
    return this.u16() + this.u16() * 0x1_0000
  }

  /** Returns a view. */
  bytes(count: number): Uint8Array {
    const at = this.#take(count)
    return this.#bytes.subarray(at, at + count)
  }

  /** Returns all remaining bytes as a view. */
  rest(): Uint8Array {
    return this.bytes(this.remaining)
  }

  #take(count: number): number {
    const at = this.#at
    if (this.#bytes.length - at < count) {
      throw new MalformedGraphics(
        `${this.#what}: expected ${count} bytes at ${at}, got ${this.#bytes.length - at}`,
      )
    }
    this.#at = at + count
    return at
  }
}

/**
 * Reads the numbers and fields of one RDP message. Bounds are checked before every read; fields are views
 * into the message (`subarray`), never copies. Numbers are little-endian as in MS-RDPBCGR; those of TPKT,
 * X.224 and MCS (`uint16be`) are big-endian.
 */
import { MalformedError } from '../../bytes/malformed.ts'

export class ByteReader {
  readonly #bytes: Uint8Array
  readonly #what: string
  #offset: number

  /** `what` names the message in errors; reading begins at `offset`. */
  constructor(bytes: Uint8Array, what: string, offset = 0) {
    this.#bytes = bytes
    this.#what = what
    this.#offset = offset
    if (bytes.length < offset) this.#short(0)
  }

  get offset(): number {
    return this.#offset
  }

  get remaining(): number {
    return this.#bytes.length - this.#offset
  }

  uint8(): number {
    return this.#bytes[this.#take(1)]!
  }

  uint16(): number {
    const at = this.#take(2)
    return this.#bytes[at]! | (this.#bytes[at + 1]! << 8)
  }

  uint32(): number {
    const low = this.uint16()
    return low + this.uint16() * 0x10000
  }

  /** Reads a uint64 that counts bytes. Throws if it exceeds 2^53 - 1. */
  size(): number {
    const low = this.uint32()
    const high = this.uint32()
    if (0x1fffff < high) this.fail('a size of at most 2^53 - 1 was expected, found more')
    return high * 0x100000000 + low
  }

  uint16be(): number {
    const at = this.#take(2)
    return (this.#bytes[at]! << 8) | this.#bytes[at + 1]!
  }

  /** Returns `length` bytes as a view. */
  bytes(length: number): Uint8Array {
    const begin = this.#take(length)
    return this.#bytes.subarray(begin, begin + length)
  }

  skip(length: number): void {
    this.#take(length)
  }

  /** Returns the remaining bytes as a view. */
  rest(): Uint8Array {
    return this.bytes(this.remaining)
  }

  /** Throws if any bytes remain. */
  end(): void {
    if (this.remaining > 0) {
      this.fail(`the end was expected at offset ${this.#offset}, found ${this.remaining} more bytes`)
    }
  }

  /** Throws if the number is none of `wanted`. */
  expect(what: string, found: number, ...wanted: number[]): number {
    if (wanted.includes(found)) return found
    const list = wanted.map((number) => `0x${number.toString(16)}`).join(' or ')
    return this.fail(`${what} ${list} was expected, found 0x${found.toString(16)}`)
  }

  /** Throws with the message's name before the text. */
  fail(text: string): never {
    throw new MalformedError(`${this.#what}: ${text}`)
  }

  #take(length: number): number {
    const begin = this.#offset
    if (this.#bytes.length - begin < length) this.#short(length)
    this.#offset = begin + length
    return begin
  }

  #short(length: number): never {
    this.fail(
      `${length} bytes were expected at offset ${this.#offset}, found ${this.#bytes.length - this.#offset}`,
    )
  }
}

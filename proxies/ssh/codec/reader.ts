/** Reads the fields of one message (RFC 4251 section 5), named in its errors. */
import { WireReader } from '../../../src/ssh-wire/reader.ts'
import { MalformedError } from '../../bytes/malformed.ts'
import { latin1 } from '../../bytes/text.ts'

/** RFC 4251 section 6: the names of requests, channel types and algorithms. */
export const NAME_LIMIT = 64

export class Reader extends WireReader {
  readonly #what: string

  /** `what` names the message in errors; reading begins at `offset`. */
  constructor(bytes: Uint8Array, what: string, offset = 0) {
    super(bytes, offset)
    this.#what = what
    if (bytes.length < offset) throw this.tooShort(0)
  }

  /** RFC 4251: every value but 0 is true. */
  boolean(): boolean {
    return this.byte() !== 0
  }

  /** A uint64 size of a file. Throws if it exceeds 2^53 - 1. */
  size(): number {
    const high = this.uint32()
    const value = high * 0x100000000 + this.uint32()
    if (high > 0x1fffff) {
      throw new MalformedError(`${this.#what}: a size of at most 2^53 - 1 was expected, found more`)
    }
    return value
  }

  /** A byte string of at most `limit` bytes, as a view. */
  override string(limit = Number.MAX_SAFE_INTEGER): Uint8Array {
    const length = this.uint32()
    if (limit < length) {
      throw new MalformedError(
        `${this.#what}: a string of at most ${limit} bytes was expected, found ${length} bytes at offset ${this.offset - 4}`,
      )
    }
    const begin = this.take(length)
    return this.bytes.subarray(begin, begin + length)
  }

  /** A protocol name (RFC 4251 section 6), byte for byte. */
  name(): string {
    return latin1(this.string(NAME_LIMIT))
  }

  /** RFC 4251 section 5: comma-separated names; the empty string is the empty list. */
  nameList(): string[] {
    const text = latin1(this.string())
    if (text === '') return []
    const names = text.split(',')
    if (names.some((name) => name === '' || NAME_LIMIT < name.length)) {
      throw new MalformedError(`${this.#what}: a list of names of 1 to ${NAME_LIMIT} characters was expected`)
    }
    return names
  }

  /** Returns the remaining bytes as a view. */
  rest(): Uint8Array {
    const begin = this.offset
    this.offset = this.bytes.length
    return this.bytes.subarray(begin)
  }

  protected tooShort(length: number): Error {
    return new MalformedError(
      `${this.#what}: ${length} bytes were expected at offset ${this.offset}, found ${this.bytes.length - this.offset}`,
    )
  }

  protected tooLong(): Error {
    return new MalformedError(
      `${this.#what}: the end was expected at offset ${this.offset}, found ${this.remaining} more bytes`,
    )
  }
}

/** Reads SSH's data types (RFC 4251 5) from untrusted bytes. */
import type { Buffer } from 'node:buffer'

export class Reader {
  readonly #bytes: Buffer
  readonly #fail: (message: string) => Error
  #at = 0

  /** `fail` makes the error to throw if the bytes end early; its message is `is cut short`. */
  constructor(bytes: Buffer, fail: (message: string) => Error) {
    this.#bytes = bytes
    this.#fail = fail
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length
  }

  /** Number of bytes read. */
  get at(): number {
    return this.#at
  }

  byte(): number {
    return this.#take(1)[0]!
  }

  uint32(): number {
    return this.#take(4).readUInt32BE()
  }

  uint64(): bigint {
    return this.#take(8).readBigUInt64BE()
  }

  /** Returns a view, not a copy. */
  string(): Buffer {
    return this.#take(this.uint32())
  }

  /** Reads all that is left as consecutive strings; at most `max` of them. */
  strings(max: number): Buffer[] {
    const found: Buffer[] = []
    while (!this.atEnd) {
      if (found.length === max) throw this.#fail(`has more than ${max} entries in a list`)
      found.push(this.string())
    }
    return found
  }

  /** @throws the error of `fail` unless all bytes have been read */
  end(): void {
    if (!this.atEnd) throw this.#fail('is longer than its fields')
  }

  #take(length: number): Buffer {
    if (this.#bytes.length - this.#at < length) throw this.#fail('is cut short')
    this.#at += length
    return this.#bytes.subarray(this.#at - length, this.#at)
  }
}

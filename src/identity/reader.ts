/** Reads keys, certificates and signatures from untrusted bytes. */
import type { Buffer } from 'node:buffer'
import { WireReader } from '../ssh-wire/reader.ts'

export class Reader extends WireReader<Buffer> {
  readonly #fail: (message: string) => Error

  /** `fail` makes the error from a message such as `is cut short`. */
  constructor(bytes: Buffer, fail: (message: string) => Error) {
    super(bytes)
    this.#fail = fail
  }

  get atEnd(): boolean {
    return this.remaining === 0
  }

  /** Number of bytes read. */
  get at(): number {
    return this.offset
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

  protected tooShort(): Error {
    return this.#fail('is cut short')
  }

  protected tooLong(): Error {
    return this.#fail('is longer than its fields')
  }
}

/** Collects one line at a time from the chunks of a stream. */
import { Buffer } from 'node:buffer'
import { MalformedError } from '../../bytes/malformed.ts'

const NEWLINE = 0x0a

export class LineBuffer {
  readonly #limit: number
  #pieces: Buffer[] = []
  #length = 0
  #complete = false

  constructor(limit: number) {
    this.#limit = limit
  }

  get empty(): boolean {
    return this.#length === 0
  }

  /** The line without its newline. Undefined until it is complete. */
  get line(): Uint8Array | undefined {
    return this.#complete ? Buffer.concat(this.#pieces) : undefined
  }

  /** Reads bytes up to and including the newline; returns their number. Throws over the limit. */
  take(data: Uint8Array): number {
    const newline = data.indexOf(NEWLINE)
    const piece = newline === -1 ? data : data.subarray(0, newline)
    this.#length += piece.length
    if (this.#limit < this.#length) {
      throw new MalformedError(`a line of at most ${this.#limit} bytes was expected, found more`)
    }
    this.#pieces.push(Buffer.from(piece))
    if (newline === -1) return piece.length
    this.#complete = true
    return newline + 1
  }

  clear(): void {
    this.#pieces = []
    this.#length = 0
    this.#complete = false
  }
}

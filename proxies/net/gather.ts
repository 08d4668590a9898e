/** Joins the writes of one turn of the event loop: a flood of small messages becomes one write. */
import { Buffer } from 'node:buffer'

/** The size of a socket's read. */
const SIZE = 64 * 1024

const buffer = Buffer.allocUnsafeSlow(SIZE)
let length = 0
/** The connection whose bytes are in the buffer. */
let owner: Gather | undefined

export class Gather {
  readonly #write: (bytes: Uint8Array) => void

  /** `write` receives views that are valid during the call only. */
  constructor(write: (bytes: Uint8Array) => void) {
    this.#write = write
  }

  /** Copies the bytes, and writes them at the end of this turn at the latest. */
  add(bytes: Uint8Array): void {
    if (owner !== this || SIZE < length + bytes.length) owner?.flush()
    if (SIZE < bytes.length) {
      this.#write(bytes)
      return
    }
    if (!owner) {
      owner = this
      queueMicrotask(() => this.flush())
    }
    buffer.set(bytes, length)
    length += bytes.length
  }

  /** Writes the gathered bytes now. */
  flush(): void {
    if (owner !== this) return
    const written = buffer.subarray(0, length)
    owner = undefined
    length = 0
    this.#write(written)
  }
}

/**
 * Sends views of what is written anew afterwards. They are copied into buffers that are used again and again, for each
 * is memory outside the heap, and the garbage collector marks the whole heap for every few dozen MiB of that.
 */
import { Buffer } from 'node:buffer'
import type { ByteStream } from './byte-stream.ts'

/** As much as a socket reads at once. */
const SIZE = 64 * 1024
/** Less is copied into a part of a buffer that Node has anyway. */
const LARGE = 4096
/** Free ones that are kept, 4 MiB: a busy connection has up to six in use. */
const MAX_FREE = 64

const free: Buffer[] = []

export class Sender {
  readonly #stream: Pick<ByteStream, 'write' | 'queued'>
  readonly #used: Buffer[] = []

  constructor(stream: Pick<ByteStream, 'write' | 'queued'>) {
    this.#stream = stream
  }

  /** `bytes` may be written anew when this returns. */
  send(bytes: Uint8Array): void {
    if (bytes.length < LARGE || SIZE < bytes.length) {
      this.#stream.write(Buffer.from(bytes))
      return
    }
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(SIZE)
    buffer.set(bytes)
    this.#used.push(buffer)
    this.#stream.write(buffer.subarray(0, bytes.length))
    // Node has written it through, unless the kernel's buffer is full.
    this.recycle()
  }

  /** After what has made the stream send: where nothing waits any more the buffers are free. */
  recycle(): void {
    if (this.#stream.queued > 0) return
    for (let buffer = this.#used.pop(); buffer; buffer = this.#used.pop()) {
      if (free.length < MAX_FREE) free.push(buffer)
    }
  }
}

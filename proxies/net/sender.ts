/**
 * Sends views of memory that is overwritten afterwards. They are copied into reused buffers: each new buffer
 * is memory outside the heap, and the garbage collector marks the whole heap for every few dozen MiB of that.
 */
import { Buffer } from 'node:buffer'
import type { ByteStream } from './byte-stream.ts'

/** The size of a socket's read. */
const SIZE = 64 * 1024
/** Smaller pieces are copied into Node's own buffer pool. */
const LARGE = 4096
/** Free buffers that are kept, 4 MiB: a busy connection has up to six in use. */
const MAX_FREE = 64

const free: Buffer[] = []

export class Sender {
  readonly #stream: Pick<ByteStream, 'write' | 'queued'>
  readonly #used: Buffer[] = []

  constructor(stream: Pick<ByteStream, 'write' | 'queued'>) {
    this.#stream = stream
  }

  /** `bytes` may be overwritten after this returns. */
  send(bytes: Uint8Array): void {
    if (bytes.length < LARGE || SIZE < bytes.length) {
      this.#stream.write(Buffer.from(bytes))
      return
    }
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(SIZE)
    buffer.set(bytes)
    this.#used.push(buffer)
    this.#stream.write(buffer.subarray(0, bytes.length))
    // Node has written the bytes already, unless the kernel's buffer is full.
    this.recycle()
  }

  /** Frees the buffers if nothing waits to be sent. Called after the stream may have sent something. */
  recycle(): void {
    if (this.#stream.queued > 0) return
    for (let buffer = this.#used.pop(); buffer; buffer = this.#used.pop()) {
      if (free.length < MAX_FREE) free.push(buffer)
    }
  }
}

/** A queue of bytes in blocks, so that its cost does not depend on the size of the chunks. */
import { Buffer } from 'node:buffer'

const BLOCK = 16 * 1024

export class ByteQueue {
  #blocks: { bytes: Buffer; begin: number; end: number }[] = []
  #length = 0

  get length(): number {
    return this.#length
  }

  append(bytes: Uint8Array): void {
    this.#length += bytes.length
    for (let at = 0; at < bytes.length; ) {
      let last = this.#blocks.at(-1)
      if (last === undefined || last.end === last.bytes.length) {
        last = { bytes: Buffer.allocUnsafeSlow(Math.max(BLOCK, bytes.length - at)), begin: 0, end: 0 }
        this.#blocks.push(last)
      }
      const piece = bytes.subarray(at, at + last.bytes.length - last.end)
      last.bytes.set(piece, last.end)
      last.end += piece.length
      at += piece.length
    }
  }

  /** Returns the first bytes in one piece, at most `limit`; valid until the queue changes. */
  first(limit = Number.POSITIVE_INFINITY): Uint8Array {
    const block = this.#blocks[0]
    return block === undefined
      ? Buffer.alloc(0)
      : block.bytes.subarray(block.begin, Math.min(block.end, block.begin + limit))
  }

  /** Removes the first `count` bytes; at most as many as `first` returned. */
  drop(count: number): void {
    const block = this.#blocks[0]
    if (block === undefined) return
    block.begin += count
    this.#length -= count
    if (block.begin === block.end) this.#blocks.shift()
  }

  clear(): void {
    this.#blocks = []
    this.#length = 0
  }
}

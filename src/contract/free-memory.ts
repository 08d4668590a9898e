/** Memory of large messages that serves again, and is given back to the system when it has not for a while. */
import { Buffer } from 'node:buffer'

/** Bytes that are kept at most: a few appends to recordings. */
const MAX_FREE = 32 * 1024 * 1024
const SMALLEST = 64 * 1024
/** Milliseconds without use after which all of it is given back. */
const IDLE_MS = 10_000

export class FreeMemory {
  readonly #maxFree: number
  /** By their length, which is a power of two. */
  readonly #free = new Map<number, Buffer[]>()
  #bytes = 0
  #isUsed = false
  #idle: NodeJS.Timeout | undefined

  constructor({ maxFree = MAX_FREE }: { maxFree?: number } = {}) {
    this.#maxFree = maxFree
  }

  /** Bytes that are kept. */
  get bytes(): number {
    return this.#bytes
  }

  /** Returns at least that many bytes, of any content. */
  take(length: number): Buffer {
    this.#isUsed = true
    const size = Math.max(SMALLEST, 2 ** Math.ceil(Math.log2(length)))
    const memory = this.#free.get(size)?.pop()
    if (!memory) return Buffer.allocUnsafeSlow(size)
    this.#bytes -= size
    return memory
  }

  /** Keeps memory of `take` if there is room for it. */
  put(memory: Buffer): void {
    if (this.#bytes + memory.length > this.#maxFree) return
    const same = this.#free.get(memory.length)
    if (same) same.push(memory)
    else this.#free.set(memory.length, [memory])
    this.#bytes += memory.length
    this.#idle ??= setInterval(() => this.#look(), IDLE_MS).unref()
  }

  #look(): void {
    if (this.#isUsed) {
      this.#isUsed = false
      return
    }
    this.#free.clear()
    this.#bytes = 0
    clearInterval(this.#idle)
    this.#idle = undefined
  }
}

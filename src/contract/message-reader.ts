/**
 * Cuts a stream of bytes into messages (wire.ts). A large message is read into memory of its own, where its byte
 * arrays stay, and which serves again: in bulk the garbage collector has cost more than everything else here.
 */
import { Buffer } from 'node:buffer'
import { FreeMemory } from './free-memory.ts'
import { decodeMessage, LENGTH, MAX_MESSAGE, WireError } from './wire.ts'

/** Bytes of a message from which it has memory of its own. */
const LARGE = 32 * 1024
const NEAR = 2 * LARGE

/** One for the process: its readers seldom need memory at the same time. */
const free = new FreeMemory()

export class MessageReader {
  readonly #maxText: number
  /** The bytes that were read and not used yet, from `#begin` to `#end`. */
  readonly #near = Buffer.allocUnsafeSlow(NEAR)
  #begin = 0
  #end = 0
  /** The large message that is being read, after its first length. */
  #large: { memory: Buffer; length: number; held: number } | undefined
  readonly #memories = new WeakMap<object, Buffer>()

  /** `maxText`: the largest JSON text that is accepted. */
  constructor(maxText: number = MAX_MESSAGE) {
    this.#maxText = maxText
  }

  /** Returns the place for the next bytes, which is never empty. */
  room(): Buffer {
    const large = this.#large
    return large ? large.memory.subarray(large.held, large.length) : this.#near.subarray(this.#end)
  }

  /**
   * Takes that many bytes, which were put in the room. Returns the messages that are complete now.
   * @throws WireError for bytes that are no message: nothing after them can be read
   */
  take(count: number): unknown[] {
    if (!this.#large) {
      this.#end += count
      return this.#cut()
    }
    this.#large.held += count
    return this.#large.held === this.#large.length ? [this.#takeLarge()] : []
  }

  /** Like \`take\`, for bytes that are elsewhere. */
  read(piece: Uint8Array): unknown[] {
    const messages: unknown[] = []
    for (let at = 0; at < piece.length; ) {
      const room = this.room()
      const part = piece.subarray(at, at + room.length)
      room.set(part)
      at += part.length
      for (const message of this.take(part.length)) messages.push(message)
    }
    return messages
  }

  /** Returns the bytes of a large message's own memory; 0 for others. */
  memoryOf(message: object): number {
    return this.#memories.get(message)?.length ?? 0
  }

  /** Has the memory of a message's byte arrays serve again: nothing uses them any more. */
  release(message: object): void {
    const memory = this.#memories.get(message)
    if (!memory) return
    this.#memories.delete(message)
    free.put(memory)
  }

  #cut(): unknown[] {
    const messages: unknown[] = []
    while (this.#end - this.#begin >= LENGTH) {
      const length = this.#near.readUInt32BE(this.#begin)
      if (length > MAX_MESSAGE) throw new WireError(`a message of ${length} bytes is too long`)
      const from = this.#begin + LENGTH
      const whole = this.#end >= from + length
      if (!whole && length <= LARGE) break
      this.#begin = Math.min(from + length, this.#end)
      if (whole) {
        const bytes = Buffer.from(this.#near.subarray(from, this.#begin))
        messages.push(decodeMessage(bytes, this.#maxText))
      } else {
        const memory = free.take(length)
        this.#large = { memory, length, held: this.#near.copy(memory, 0, from, this.#end) }
      }
    }
    this.#near.copy(this.#near, 0, this.#begin, this.#end)
    this.#end -= this.#begin
    this.#begin = 0
    return messages
  }

  #takeLarge(): unknown {
    const { memory, length } = this.#large!
    this.#large = undefined
    const message = decodeMessage(memory.subarray(0, length), this.#maxText)
    if (typeof message === 'object' && message !== null) this.#memories.set(message, memory)
    return message
  }
}

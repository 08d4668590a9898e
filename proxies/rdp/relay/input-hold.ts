/** Holds input, in order, until the recording has the picture that the input refers to. */
import { Buffer } from 'node:buffer'

/** Bytes from which on the client is no longer read. */
const FULL = 64 * 1024

export interface HeldInput {
  /** Received on the fast path; otherwise on the I/O channel. */
  isFast: boolean
  bytes: Uint8Array
}

export class InputHold {
  #held: HeldInput[] = []
  #bytes = 0

  get isEmpty(): boolean {
    return this.#held.length === 0
  }

  get isFull(): boolean {
    return FULL <= this.#bytes
  }

  /** Adds a copy. */
  add(isFast: boolean, bytes: Uint8Array): void {
    this.#held.push({ isFast, bytes: Buffer.from(bytes) })
    this.#bytes += bytes.length
  }

  /** Removes and returns all held input. */
  take(): HeldInput[] {
    this.#bytes = 0
    return this.#held.splice(0)
  }
}

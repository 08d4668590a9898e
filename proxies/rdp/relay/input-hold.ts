/** Input that waits until the recording has the picture that it is about, in its order. */
import { Buffer } from 'node:buffer'

/** Bytes from which on nothing more is read of the client. */
const FULL = 64 * 1024

export interface HeldInput {
  /** It came on the fast path; else on the I/O channel. */
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

  /** A copy. */
  add(isFast: boolean, bytes: Uint8Array): void {
    this.#held.push({ isFast, bytes: Buffer.from(bytes) })
    this.#bytes += bytes.length
  }

  /** All of it, which is not held any more. */
  take(): HeldInput[] {
    this.#bytes = 0
    return this.#held.splice(0)
  }
}

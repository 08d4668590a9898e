/** Messages of the client on one channel that wait for a decision or for window, in order; their bytes are bounded. */
import type { Buffer } from 'node:buffer'
import { MalformedError } from '../malformed.ts'
import { MAX_QUEUED } from './limits.ts'

export class ClientQueue {
  #messages: Buffer[] = []
  #bytes = 0

  get isEmpty(): boolean {
    return this.#messages.length === 0
  }

  /** They are kept: copies of what the next read overwrites. Throws MalformedError when it is too much. */
  push(messages: readonly Buffer[]): void {
    for (const message of messages) {
      this.#messages.push(message)
      this.#bytes += message.length
    }
    if (this.#bytes > MAX_QUEUED) throw new MalformedError('too many messages before an answer')
  }

  /** Goes on with what waits: `step` answers with what of a message has to wait again, and may clear the queue. */
  drain(step: (message: Buffer) => Buffer | undefined): void {
    for (let first = this.#messages[0]; first !== undefined; first = this.#messages[0]) {
      const rest = step(first)
      if (this.#messages[0] !== first) return
      if (rest !== undefined) {
        this.#bytes += rest.length - first.length
        this.#messages[0] = rest
        return
      }
      this.#messages.shift()
      this.#bytes -= first.length
    }
  }

  clear(): void {
    this.#messages = []
    this.#bytes = 0
  }
}

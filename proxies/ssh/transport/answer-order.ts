/**
 * Keeps replies to global requests in the order of the requests (RFC 4254 4: nothing else ties one to the
 * other). The transport answers some itself; the connection's owner answers the others, perhaps later.
 */
import type { Buffer } from 'node:buffer'

export class AnswerOrder {
  /** In the order of the requests: a ready reply, or undefined for a reply that the owner will send. */
  readonly #asked: (Buffer | undefined)[] = []

  /** Notes a request that the owner answers. Returns false if more than `max` are open. */
  expect(max: number): boolean {
    return this.#asked.push(undefined) <= max
  }

  /** Notes a request with its reply. Returns the replies that may be sent now. */
  answer(message: Buffer): Buffer[] {
    this.#asked.push(message)
    return this.#ready()
  }

  /** Notes the owner's reply to its first open request. Returns the replies that may be sent now. */
  answered(): Buffer[] {
    this.#asked.shift()
    return this.#ready()
  }

  #ready(): Buffer[] {
    const first = this.#asked.indexOf(undefined)
    return this.#asked.splice(0, first === -1 ? this.#asked.length : first) as Buffer[]
  }
}

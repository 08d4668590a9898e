/**
 * The order of answers to global requests (RFC 4254 4: that of the requests, for nothing else ties one to the other),
 * where some are answered by the transport itself and the others by whoever has the connection, perhaps later.
 */
import type { Buffer } from 'node:buffer'

export class AnswerOrder {
  /** In the order of the requests: an answer that is ready, or undefined for one that is another's to give. */
  readonly #asked: (Buffer | undefined)[] = []

  /** A request has come that another answers. False: more are open than `max`. */
  expect(max: number): boolean {
    return this.#asked.push(undefined) <= max
  }

  /** A request has come, and this is the answer. Answers with what may be sent now. */
  answer(message: Buffer): Buffer[] {
    this.#asked.push(message)
    return this.#ready()
  }

  /** Another has sent its answer to the first request that waits for one. Answers with what may be sent now. */
  answered(): Buffer[] {
    this.#asked.shift()
    return this.#ready()
  }

  #ready(): Buffer[] {
    const first = this.#asked.indexOf(undefined)
    return this.#asked.splice(0, first === -1 ? this.#asked.length : first) as Buffer[]
  }
}

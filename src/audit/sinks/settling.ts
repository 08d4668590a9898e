/**
 * Settles events of receivers without acknowledgements: events count as received when the connection has
 * stayed open for a while after they were sent. If it breaks before, they are sent again.
 */
import type { After } from '../sink.ts'

export class Settling {
  readonly #after: After
  readonly #ms: number
  readonly #settled: (sequence: number) => void
  #pending: number | undefined
  #cancel: (() => void) | undefined

  constructor(after: After, ms: number, settled: (sequence: number) => void) {
    this.#after = after
    this.#ms = ms
    this.#settled = settled
  }

  /**
   * Notes that the receiver may have all rows up to this one: settled if it is still connected after the
   * time.
   */
  sent(sequence: number): void {
    this.#pending = sequence
    if (!this.#cancel) this.#watch(sequence)
  }

  /** Settles all sent rows at once: the receiver has proven to have them. */
  proven(): void {
    if (this.#pending !== undefined) this.#settled(this.#pending)
    this.stop()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#pending = undefined
  }

  /** Runs one check at a time: later rows wait for the next one. */
  #watch(sequence: number): void {
    this.#cancel = this.#after(this.#ms, () => {
      this.#cancel = undefined
      this.#settled(sequence)
      if (this.#pending !== undefined && this.#pending > sequence) this.#watch(this.#pending)
      else this.#pending = undefined
    })
  }
}

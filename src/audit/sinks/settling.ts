/**
 * Receivers that acknowledge nothing: what they were sent counts as received when the connection has stood for a
 * while since. One that breaks before that is taken to have lost it, and it is sent again.
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

  /** The receiver may have all up to this row: believed when it is still there after the time. */
  sent(sequence: number): void {
    this.#pending = sequence
    if (!this.#cancel) this.#watch(sequence)
  }

  /** The receiver has proven to have it all. */
  proven(): void {
    if (this.#pending !== undefined) this.#settled(this.#pending)
    this.stop()
  }

  stop(): void {
    this.#cancel?.()
    this.#cancel = undefined
    this.#pending = undefined
  }

  /** One look at a time: what comes meanwhile has the next one. */
  #watch(sequence: number): void {
    this.#cancel = this.#after(this.#ms, () => {
      this.#cancel = undefined
      this.#settled(sequence)
      if (this.#pending !== undefined && this.#pending > sequence) this.#watch(this.#pending)
      else this.#pending = undefined
    })
  }
}

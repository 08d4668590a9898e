/**
 * What one review takes away: everybody is told before anything is written about it, and nobody stays in because
 * somebody else could not be judged or an event not be written. What failed is thrown at the end.
 */
import { setImmediate as aside } from 'node:timers/promises'

/** Milliseconds that a review goes on before others have their turn. */
const SLICE_MS = 2
/** Events handed to the audit log at a time: it has others to store, and only so many may wait. */
const TOGETHER = 500

/** Writes the event of what was done already. */
export type Telling = () => Promise<void>

export class Withdrawals {
  readonly #tellings: Telling[] = []
  /** The first one. */
  #failure: { error: unknown } | undefined

  /** Judges one after the other; `judge` answers with what is to be written, undefined: nothing was taken away. */
  async each<T>(all: Iterable<T>, judge: (one: T) => Promise<Telling | undefined>): Promise<void> {
    let since = performance.now()
    for (const one of [...all]) {
      if (performance.now() - since > SLICE_MS) {
        await aside()
        since = performance.now()
      }
      try {
        const telling = await judge(one)
        if (telling) this.#tellings.push(telling)
      } catch (error) {
        this.#failure ??= { error }
      }
    }
  }

  /** Writes the events. @throws the first thing that failed, when all the others are done */
  async tell(): Promise<void> {
    for (let at = 0; at < this.#tellings.length; at += TOGETHER) {
      const some = this.#tellings.slice(at, at + TOGETHER)
      for (const told of await Promise.allSettled(some.map((telling) => telling()))) {
        if (told.status === 'rejected') this.#failure ??= { error: told.reason }
      }
    }
    if (this.#failure) throw this.#failure.error
  }
}

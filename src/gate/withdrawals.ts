/**
 * The withdrawals of one review. All notices are sent before any event is written, and an object that cannot
 * be judged or an event that cannot be written does not keep any other alive. The first failure is thrown at
 * the end.
 */
import { Pace } from '../threads/pace.ts'

/** Events handed to the audit log at a time: it has others to store, and its queue is limited. */
const TOGETHER = 500

/** Writes the event of an action that was done already. */
export type Telling = () => Promise<void>

export class Withdrawals {
  readonly #tellings: Telling[] = []
  /** First failure. */
  #failure: { error: unknown } | undefined

  /**
   * Judges one after the other; `judge` returns the function that writes the event, or undefined if the
   * object may stay.
   */
  async each<T>(all: Iterable<T>, judge: (one: T) => Promise<Telling | undefined>): Promise<void> {
    const pace = new Pace()
    for (const one of [...all]) {
      await pace.step()
      try {
        const telling = await judge(one)
        if (telling) this.#tellings.push(telling)
      } catch (error) {
        this.#failure ??= { error }
      }
    }
  }

  /** Writes the events. @throws the first failure, after all the others are done */
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

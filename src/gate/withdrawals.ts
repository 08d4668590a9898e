/**
 * The withdrawals of one review. All notices are sent before any event is written, and an object that cannot
 * be judged or an event that cannot be written does not keep any other alive. The first failure is thrown at
 * the end.
 */
import { Pace } from '../threads/pace.ts'

/** Events handed to the audit log at a time: it has others to store, and its queue is limited. */
const TOGETHER = 500

/** Objects that are prepared at a time. */
const PREPARED = 64

/** Returns those for which the test holds, found in slices. */
export async function chosen<T>(all: Iterable<T>, test: (one: T) => boolean): Promise<T[]> {
  const found: T[] = []
  const pace = new Pace()
  for (const one of [...all]) {
    await pace.step()
    if (test(one)) found.push(one)
  }
  return found
}

/** Writes the event of an action that was done already. */
export type Telling = () => Promise<void>

export class Withdrawals {
  readonly #tellings: Telling[] = []
  /** First failure. */
  #failure: { error: unknown } | undefined

  /** Whether an object could not be judged, or an event not be written. */
  get hasFailed(): boolean {
    return this.#failure !== undefined
  }

  /**
   * Judges one after the other; `judge` returns the function that writes the event, or undefined if the object may
   * stay. `prepare` asks for what some of them need, while those before them are judged.
   */
  async each<T>(
    all: Iterable<T>,
    judge: (one: T) => Promise<Telling | undefined>,
    prepare?: (some: readonly T[]) => Promise<void>,
  ): Promise<void> {
    const pace = new Pace()
    const waiting = [...all]
    const prepared = (begin: number): Promise<boolean> =>
      this.#attempt(async () => {
        if (begin < waiting.length) await prepare?.(waiting.slice(begin, begin + PREPARED))
      })
    let next = prepared(0)
    for (let begin = 0; begin < waiting.length; begin += PREPARED) {
      await pace.step()
      const isPrepared = await next
      // The database looks while these are judged.
      next = prepared(begin + PREPARED)
      if (!isPrepared) continue
      for (const one of waiting.slice(begin, begin + PREPARED)) {
        await pace.step()
        await this.#attempt(async () => {
          const telling = await judge(one)
          if (telling) this.#tellings.push(telling)
        })
      }
    }
    await next
  }

  /** Returns whether the work was done. */
  async #attempt(work: () => Promise<void>): Promise<boolean> {
    try {
      await work()
      return true
    } catch (error) {
      this.#failure ??= { error }
      return false
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

/** Writes to the store that wait for a database that is away: the ends of sessions, whose events are kept already. */
import { StoreUnavailableError } from '../store/engine/errors.ts'
import type { Reach } from '../store/store.ts'

export class Arrears {
  readonly #reach: Reach
  #waiting: (() => Promise<void>)[] = []

  constructor(reach: Reach) {
    this.#reach = reach
    reach.onChange((away) => {
      if (!away) void this.#pay()
    })
  }

  /** Resolves when the write is done, or waits for the database. Rejects for any other failure. */
  async write(work: () => Promise<void>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      this.#waiting.push(work)
      // It may be back already, or never have been away but for one connection.
      if (await this.#reach.check()) await this.#pay()
    }
  }

  async #pay(): Promise<void> {
    const works = this.#waiting
    this.#waiting = []
    for (const [at, work] of works.entries()) {
      try {
        await work()
      } catch (error) {
        // Refused: the next start finds the session, and closes it.
        if (!(error instanceof StoreUnavailableError)) continue
        this.#waiting.unshift(...works.slice(at))
        return
      }
    }
  }
}

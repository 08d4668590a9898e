/** Writes to the store that wait for a database that is away: the ends of sessions, whose events are kept already. */
import { StoreUnavailableError } from '../store/engine/errors.ts'
import type { Reach } from '../store/store.ts'

/** Milliseconds until the writes are tried again, if the database is there and fails; doubled up to the last. */
const FIRST_RETRY_MS = 1000
const LAST_RETRY_MS = 60_000

export class Arrears {
  readonly #reach: Reach
  #waiting: (() => Promise<void>)[] = []
  #again: NodeJS.Timeout | undefined
  #delay = FIRST_RETRY_MS

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
        this.#later()
        return
      }
    }
    this.#delay = FIRST_RETRY_MS
  }

  /** Tries again without an outage: the watch may find the database there while statements fail. */
  #later(): void {
    if (this.#again) return
    this.#again = setTimeout(() => {
      this.#again = undefined
      if (!this.#reach.away) void this.#pay()
    }, this.#delay)
    this.#again.unref()
    this.#delay = Math.min(2 * this.#delay, LAST_RETRY_MS)
  }
}

/** Reads the store's log of changes, from where it was read before. */
import type { ChangeRepository } from '../store/store.ts'
import { Pace } from '../threads/pace.ts'
import type { Touched } from './touched.ts'

/** Changes that one query reads. */
const PIECE = 500
/** Changes that are kept for readers; one that is further behind reviews all. */
export const KEPT_CHANGES = 20_000
/** Old changes are removed when so many were read, or removed, since. */
const REMOVE_AFTER = 2_000

export class Changes {
  readonly #log: ChangeRepository
  /** Last revision that was read. Undefined at the begin. */
  #read: number | undefined
  #isForgotten = false
  #sinceRemoval = REMOVE_AFTER

  constructor(log: ChangeRepository) {
    this.#log = log
  }

  /** Makes the next call of `read` say that all may have changed: the log may be another one. */
  forget(): void {
    this.#isForgotten = true
  }

  /**
   * Adds to `touched` what has changed since the last call: all if it is not known. Rejects if the log cannot be
   * read; the next call reads the same again.
   */
  async read(touched: Touched): Promise<void> {
    if (this.#read === undefined || this.#isForgotten) {
      this.#isForgotten = false
      // What is written from now on comes after it, and all is reviewed behind it.
      this.#read = (await this.#log.kept()).last
      touched.addAll()
      return
    }
    const pace = new Pace()
    for (;;) {
      await pace.step()
      const begin: number = this.#read
      const piece = await this.#log.after(begin, PIECE)
      const last = piece.at(-1)
      if (!last) return
      // Read behind the piece: changes may have been removed before it was read.
      const kept = await this.#log.kept()
      const isBehind = begin + 1 < kept.first || begin + KEPT_CHANGES < kept.last
      if (isBehind) touched.addAll()
      else for (const change of piece) touched.add(change)
      this.#sinceRemoval += piece.length
      this.#read = isBehind ? kept.last : last.revision
      if (isBehind) this.#sinceRemoval = REMOVE_AFTER
    }
  }

  /** Removes changes that are too old to be read, some at a time. */
  async removeOld(): Promise<void> {
    if (this.#sinceRemoval < REMOVE_AFTER) return
    const removed = await this.#log.removeOldest(KEPT_CHANGES, REMOVE_AFTER)
    if (removed < REMOVE_AFTER) this.#sinceRemoval = 0
  }
}

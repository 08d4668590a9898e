/**
 * Keeps the index up to date with the audit log: commands and files of running sessions are in it within a
 * second. The position is stored together with the added lines, so that a crash neither loses nor repeats
 * any.
 */
import type { StoredEvent } from '../audit/chain.ts'
import type { AuditRepository } from '../store/store.ts'
import type { ContentEvent } from './contents.ts'
import { contentEventOf } from './events.ts'

export const FOLLOW_INTERVAL_MS = 1000
/** Rows read at a time, since sessions share the event loop. */
const ROWS_AT_A_TIME = 500

export interface EventIndex {
  /** Returns the last row of the audit log whose events were added, or 0 if none. */
  sequence(): Promise<number>
  addEvents(events: readonly ContentEvent[], sequence: number): Promise<void>
}

export interface FollowerOptions {
  audit: Pick<AuditRepository, 'range'>
  index: EventIndex
  /** Called on an error; the next interval tries again. */
  onError: (error: Error) => void
}

export class Follower {
  readonly #options: FollowerOptions
  #timer: NodeJS.Timeout | undefined
  #running: Promise<void> | undefined
  #sequence: number | undefined
  #isClosed = false

  constructor(options: FollowerOptions) {
    this.#options = options
  }

  start(): void {
    this.#timer = setInterval(() => void this.follow(), FOLLOW_INTERVAL_MS)
    this.#timer.unref()
    void this.follow()
  }

  /**
   * Resolves when the index has all events of the audit log, or adding them has failed for now. Runs once at
   * a time.
   */
  follow(): Promise<void> {
    this.#running ??= this.#follow()
      .catch((error: Error) => {
        this.#sequence = undefined
        if (!this.#isClosed) this.#options.onError(error)
      })
      .finally(() => {
        this.#running = undefined
      })
    return this.#running
  }

  async close(): Promise<void> {
    this.#isClosed = true
    clearInterval(this.#timer)
    await this.#running
  }

  async #follow(): Promise<void> {
    const { audit, index } = this.#options
    while (!this.#isClosed) {
      this.#sequence ??= await index.sequence()
      const rows = await audit.range(this.#sequence + 1, ROWS_AT_A_TIME)
      const last = rows.at(-1)
      if (!last) return
      const events = rows.flatMap(({ json }) => contentEventOf(JSON.parse(json) as StoredEvent) ?? [])
      if (events.length > 0) await index.addEvents(events, last.sequence)
      this.#sequence = last.sequence
    }
  }
}

/** Retention: deletes recordings beyond the limits of age and size, the oldest first. */
import type { Audit } from '../audit/events/catalogue.ts'
import type { SessionRepository } from '../store/store.ts'
import type { Deletion } from './deletion.ts'

/** Milliseconds between two runs; the first run is that long after the start, when the clock has been set. */
export const RETENTION_INTERVAL_MS = 10 * 60_000
/** Limit of one run; the other recordings wait for the next. */
export const MAX_AT_ONCE = 1000
const DAY_MS = 86_400_000

export interface RetentionLimits {
  /** 0 to keep recordings for ever. */
  keepDays: number
  /** Bytes, or 0 for no limit. */
  maxSize: number
}

export interface RetentionOptions {
  sessions: SessionRepository
  audit: Pick<Audit, 'record'>
  deletion: Deletion
  limits: RetentionLimits
  /** Milliseconds since the epoch. */
  now: () => number
  /** Milliseconds since any moment, never decreasing. */
  monotonic: () => number
  /** Reports a recording that could not be deleted; the others are deleted all the same. */
  onError: (error: Error, session: string | undefined) => void
}

export class Retention {
  /** If the limits are replaced, a run in progress stops deleting by the old ones. */
  limits: RetentionLimits
  readonly #options: RetentionOptions
  #run: Promise<void> | undefined
  /** Difference between the wall clock and the monotonic one, in milliseconds. */
  readonly #offset: number

  constructor(options: RetentionOptions) {
    this.#options = options
    this.limits = options.limits
    this.#offset = options.now() - options.monotonic()
  }

  /** Deletes recordings beyond the limits, at most `MAX_AT_ONCE`. Never throws, and runs once at a time. */
  enforce(): Promise<void> {
    this.#run ??= this.#enforce()
      .catch((error: Error) => this.#options.onError(error, undefined))
      .finally(() => {
        this.#run = undefined
      })
    return this.#run
  }

  async #enforce(): Promise<void> {
    const { limits } = this
    if (limits.keepDays > 0) {
      await this.#expire(limits).catch((error: Error) => this.#options.onError(error, undefined))
    }
    if (limits.maxSize > 0) await this.#cut(limits)
  }

  async #expire(limits: RetentionLimits): Promise<void> {
    const { sessions, now } = this.#options
    // A wrongly set clock must not delete ten years of recordings.
    if (this.#hasJumped()) {
      throw new Error('the clock has jumped by a day or more: nothing is deleted by age until the next start')
    }
    const { keepDays } = limits
    const reason = `older than ${keepDays} days`
    for (const { id } of await sessions.deletable(now() - keepDays * DAY_MS, MAX_AT_ONCE)) {
      if (limits !== this.limits) return
      await this.#delete(id, 'age', reason)
    }
  }

  async #cut(limits: RetentionLimits): Promise<void> {
    const { sessions } = this.#options
    const { maxSize } = limits
    let bytes = await sessions.recordedBytes()
    if (bytes <= maxSize) return
    const reason = `more than ${maxSize} bytes of recordings`
    for (const { id, recording } of await sessions.deletable(Number.MAX_SAFE_INTEGER, MAX_AT_ONCE)) {
      if (bytes <= maxSize || limits !== this.limits) return
      if (await this.#delete(id, 'size', reason)) bytes -= recording?.size ?? 0
    }
  }

  async #delete(session: string, method: 'age' | 'size', reason: string): Promise<boolean> {
    const { deletion, audit, onError } = this.#options
    try {
      const tell = (fields: object) => audit.record('recording.deleted', fields)
      return (await deletion.remove(session, { method, reason, tell })) === 'deleted'
    } catch (error) {
      onError(error as Error, session)
      return false
    }
  }

  #hasJumped(): boolean {
    const { now, monotonic } = this.#options
    return Math.abs(now() - monotonic() - this.#offset) >= DAY_MS
  }
}
